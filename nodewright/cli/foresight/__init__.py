"""What the controllers would do, worked out on a copy of the cluster by the controllers' own decisions. Nothing is written."""
