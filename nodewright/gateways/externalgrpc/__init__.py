"""The Cluster Autoscaler's door (``--cloud-provider=externalgrpc``): gRPC in, edits of replicas out."""
