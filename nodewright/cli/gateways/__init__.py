"""The commands of ``nodewright gateway``, one file for each protocol."""
