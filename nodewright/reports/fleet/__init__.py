"""The whole fleet at once, for ``nodewright status``."""
