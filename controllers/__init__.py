"""The decisions: one reconciler for each kind, all pure. Imports ``api`` and the contract in ``providers.base``."""
