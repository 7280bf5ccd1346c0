"""What the caches show of the whole fleet: for metrics, for the log and for ``nodewright status``."""
