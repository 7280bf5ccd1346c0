"""The hosts: the contract in ``base`` and one folder per provider. Knows no Kubernetes."""
