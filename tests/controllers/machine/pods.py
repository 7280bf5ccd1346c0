"""Pods and PodDisruptionBudgets for drains."""

from __future__ import annotations

from typing import Self

from tests.builders.objects import Builder


class PodBuilder(Builder):
    api_version = "v1"
    kind = "Pod"

    def __init__(self, name: str, namespace: str = "default") -> None:
        super().__init__(name, namespace)
        self.labelled(app=name)
        self.status["phase"] = "Running"
        self._owner("ReplicaSet")

    def on(self, node_name: str) -> Self:
        self.spec["nodeName"] = node_name
        return self

    def _owner(self, kind: str) -> Self:
        name = f"{self.metadata['name']}-owner"
        self.metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
        ]
        return self

    def of_daemon_set(self) -> Self:
        """The DaemonSet itself is ``daemon_set`` of the same name; without it the pod is an orphan."""
        return self._owner("DaemonSet")

    def bare(self) -> Self:
        self.metadata.pop("ownerReferences", None)
        return self

    def ready(self) -> Self:
        return self.condition("Ready", "True")

    def volume(self, name: str, **source: object) -> Self:
        self.spec.setdefault("volumes", []).append({"name": name, **source})
        return self

    def claiming(self, claim: str) -> Self:
        return self.volume(claim, persistentVolumeClaim={"claimName": claim})

    def mirror(self) -> Self:
        return self.annotated("kubernetes.io/config.mirror", "abc")

    def phase(self, phase: str) -> Self:
        self.status["phase"] = phase
        return self

    def priority(self, priority: int) -> Self:
        self.spec["priority"] = priority
        return self


class BudgetBuilder(Builder):
    api_version = "policy/v1"
    kind = "PodDisruptionBudget"

    def over(self, app: str) -> Self:
        self.spec["selector"] = {"matchLabels": {"app": app}}
        return self

    def allowing(self, disruptions: int) -> Self:
        self.status["disruptionsAllowed"] = disruptions
        return self


class DaemonSetBuilder(Builder):
    """The owner of the pod that is called so."""

    api_version = "apps/v1"
    kind = "DaemonSet"

    def __init__(self, pod_name: str, namespace: str = "default") -> None:
        super().__init__(f"{pod_name}-owner", namespace)


class RuleBuilder(Builder):
    kind = "MachineDrainRule"

    def drain(self, behavior: str, order: int | None = None) -> Self:
        self.spec["drain"] = {"behavior": behavior, **({} if order is None else {"order": order})}
        return self

    def machines(self, **selectors: object) -> Self:
        self.spec.setdefault("machines", []).append(selectors)
        return self

    def pods(self, **selectors: object) -> Self:
        self.spec.setdefault("pods", []).append(selectors)
        return self


class ClusterWide(Builder):
    """Namespaces, PersistentVolumes and VolumeAttachments."""

    namespaced = False

    def __init__(self, api_version: str, kind: str, name: str, spec: dict[str, object] | None = None) -> None:
        super().__init__(name)
        self.body.update(apiVersion=api_version, kind=kind, spec=spec or {})


def daemon_set(pod_name: str) -> DaemonSetBuilder:
    return DaemonSetBuilder(pod_name)


def drain_rule(name: str, namespace: str = "default") -> RuleBuilder:
    return RuleBuilder(name, namespace)


def namespace(name: str, **labels: str) -> ClusterWide:
    return ClusterWide("v1", "Namespace", name).labelled(**labels)


def volume(name: str, claim: str, namespace: str = "default") -> ClusterWide:
    """A CSI volume that is bound to a claim."""
    csi = {"driver": "csi.example.com", "volumeHandle": f"handle-{name}"}
    spec: dict[str, object] = {"claimRef": {"namespace": namespace, "name": claim}, "csi": csi}
    return ClusterWide("v1", "PersistentVolume", name, spec)


def attachment(volume_name: str, node_name: str) -> ClusterWide:
    spec: dict[str, object] = {
        "attacher": "csi.example.com",
        "nodeName": node_name,
        "source": {"persistentVolumeName": volume_name},
    }
    return ClusterWide("storage.k8s.io/v1", "VolumeAttachment", f"csi-{volume_name}", spec)


def pod(name: str, namespace: str = "default") -> PodBuilder:
    return PodBuilder(name, namespace)


def budget(name: str, namespace: str = "default") -> BudgetBuilder:
    return BudgetBuilder(name, namespace)
