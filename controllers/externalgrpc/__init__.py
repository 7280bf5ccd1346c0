"""What a request of the Cluster Autoscaler over gRPC comes to; the gateway translates it and carries it out."""
