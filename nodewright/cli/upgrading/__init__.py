"""Upgrades: what may come next for each Cluster and for Nodewright itself, and the latter carried out."""
