"""The web view, started by ``nodewright up`` and ``nodewright ui``."""
