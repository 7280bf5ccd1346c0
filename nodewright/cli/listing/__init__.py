"""Clusters of several management clusters, side by side."""
