"""etcd through the client ports of its members: read in the background, and the one change that controllers make."""
