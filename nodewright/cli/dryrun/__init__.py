"""What the controllers would do, worked out by their own decisions on a copy of the cluster. Nothing is written."""
