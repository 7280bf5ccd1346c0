"""What the end-to-end tests declare, as text that a person could have written."""

from __future__ import annotations

CLUSTER = """
apiVersion: cluster.k8s.io/v1alpha1
kind: Cluster
metadata:
  name: story
spec:
  clusterNetwork:
    services: {cidrBlocks: [10.96.0.0/12]}
    pods: {cidrBlocks: [10.244.0.0/16]}
    serviceDomain: cluster.local
"""


def machine_set(name: str, replicas: int, updates: str = "InPlace", kubelet: str = "1.33.1") -> str:
    return _workers("MachineSet", name, replicas, updates, kubelet)


def machine_deployment(name: str, replicas: int, updates: str = "InPlace", kubelet: str = "1.33.1") -> str:
    return _workers("MachineDeployment", name, replicas, updates, kubelet)


def _workers(kind: str, name: str, replicas: int, updates: str, kubelet: str) -> str:
    return f"""
apiVersion: cluster.k8s.io/v1alpha1
kind: {kind}
metadata:
  name: {name}
  labels: {{cluster.k8s.io/cluster-name: story}}
spec:
  replicas: {replicas}
  selector:
    matchLabels: {{pool: {name}}}
  template:
    metadata:
      labels: {{pool: {name}, cluster.k8s.io/cluster-name: story}}
    spec:
      metadata:
        labels: {{tier: {name}}}
      versions:
        kubelet: "{kubelet}"
      providerConfig:
        value:
          apiVersion: simulated.nodewright.dev/v1alpha1
          kind: SimulatedMachineConfig
          updates: {updates}
          bootSeconds: 0.2
          joinSeconds: 0.05
          updateSeconds: 0.2
          deleteSeconds: 0.1
"""
