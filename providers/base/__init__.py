"""The contract every provider keeps: values, errors, registry and the contract tests."""
