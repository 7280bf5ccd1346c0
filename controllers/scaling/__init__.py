"""How anything that scales edits a set or a deployment: node groups and their bounds, delete marks, sizes.

The autoscaler, ProvisioningRequests, the gRPC gateway and the cloudpool gateway decide which Machines go and how large
a group is to be. What is written for that is the same for all of them, and only this package writes it:

1. Each Machine that goes is marked (``cluster.k8s.io/delete-machine``), so that its MachineSet deletes no other one.
2. Then ``replicas`` is lowered by as many.

Both writes carry the resourceVersion of the object that was decided on. If it has changed since, the API server refuses
the write (409), nothing that comes after it is written, and the scaler decides again.
"""
