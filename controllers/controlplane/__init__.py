"""The ControlPlane reconciler: Machines that run etcd and the API server, one change at a time, within the quorum."""
