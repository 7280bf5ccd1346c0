"""The other side of the protocol: our autoscaler calls whichever provider serves it."""
