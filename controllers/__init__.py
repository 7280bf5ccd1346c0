"""The decisions: one room per controller, all pure. Imports ``api`` and the contract in ``providers.base``."""
