"""The Cluster reconciler: what can be said of a Cluster from its Machines. It makes nothing and deletes nothing."""
