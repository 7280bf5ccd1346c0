"""The documentation as a site: built from ``docs/``, checked strictly, searchable without a server."""
