"""Builders of Kubernetes objects that read as sentences: ``machine("m-1").of(ms).ready().build()``.

A builder changes itself and returns itself; ``build()`` returns a fresh, deep-copied dict. Everywhere a builder takes
another object, it takes a builder or a dict. Defaults make a *valid* object: uid ``uid-<name>``, generation 1.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Self

from api import names
from tests.builders.clock import ago

SIMULATED = {"apiVersion": "simulated.nodewright.dev/v1alpha1", "kind": "SimulatedMachineConfig"}
"""The smallest providerConfig there is."""


def as_dict(obj: Builder | Mapping[str, Any]) -> dict[str, Any]:
    return obj.build() if isinstance(obj, Builder) else copy.deepcopy(dict(obj))


def owner_reference(owner: Builder | Mapping[str, Any]) -> dict[str, Any]:
    body = as_dict(owner)
    return {
        "apiVersion": body["apiVersion"],
        "kind": body["kind"],
        "name": body["metadata"]["name"],
        "uid": body["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


class Builder:
    """What all kinds share."""

    api_version = names.API_VERSION
    kind = ""
    namespaced = True

    def __init__(self, name: str, namespace: str = "default") -> None:
        metadata: dict[str, Any] = {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": ago(3600),
        }
        if self.namespaced:
            metadata["namespace"] = namespace
        self.body: dict[str, Any] = {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata}

    def build(self) -> dict[str, Any]:
        return copy.deepcopy(self.body)

    @property
    def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.body.setdefault("spec", {})
        return spec

    @property
    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.body.setdefault("status", {})
        return status

    @property
    def metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = self.body["metadata"]
        return metadata

    def uid(self, uid: str) -> Self:
        self.metadata["uid"] = uid
        return self

    def version(self, resource_version: str) -> Self:
        self.metadata["resourceVersion"] = resource_version
        return self

    def generation(self, generation: int) -> Self:
        self.metadata["generation"] = generation
        return self

    def labelled(self, labels: Mapping[str, str] | None = None, /, **more: str) -> Self:
        self.metadata.setdefault("labels", {}).update({**(labels or {}), **more})
        return self

    def unlabelled(self, key: str) -> Self:
        self.metadata.get("labels", {}).pop(key, None)
        return self

    def annotated(self, key: str, value: str = "true") -> Self:
        self.metadata.setdefault("annotations", {})[key] = value
        return self

    def in_cluster(self, name: str) -> Self:
        return self.labelled({names.CLUSTER_NAME_LABEL: name})

    def created(self, seconds_ago: float) -> Self:
        self.metadata["creationTimestamp"] = ago(seconds_ago)
        return self

    def deleting(self, seconds_ago: float = 5, *finalizers: str) -> Self:
        """Marked for deletion; an object that is deleting must have a finalizer, else it would be gone."""
        self.metadata["deletionTimestamp"] = ago(seconds_ago)
        if finalizers or not self.metadata.get("finalizers"):
            self.metadata["finalizers"] = list(finalizers or (names.FOREGROUND_FINALIZER,))
        return self

    def finalized_by(self, *finalizers: str) -> Self:
        self.metadata["finalizers"] = list(finalizers)
        return self

    def owned_by(self, owner: Builder | Mapping[str, Any]) -> Self:
        """Controlled by ``owner``; nothing else is taken over from it."""
        self.metadata["ownerReferences"] = [owner_reference(owner)]
        return self

    def orphan(self) -> Self:
        self.metadata.pop("ownerReferences", None)
        return self

    def condition(self, type_: str, status: str, reason: str = "", message: str = "", since: float = 600) -> Self:
        """Set a condition that has had this status for ``since`` seconds."""
        conditions = self.status.setdefault("conditions", [])
        conditions[:] = [c for c in conditions if c["type"] != type_]
        conditions.append(
            {
                "type": type_,
                "status": status,
                "reason": reason or type_,
                "message": message,
                "lastTransitionTime": ago(since),
                "observedGeneration": self.metadata["generation"],
            }
        )
        return self


class MachineBuilder(Builder):
    kind = "Machine"

    def __init__(self, name: str, namespace: str = "default") -> None:
        super().__init__(name, namespace)
        self.finalized_by(names.MACHINE_FINALIZER)
        self.spec.update({"providerConfig": {"value": dict(SIMULATED)}, "versions": {"kubelet": "1.34.0"}})

    def of(self, owner: Builder | Mapping[str, Any]) -> Self:
        """As the MachineSet ``owner`` makes it: owned, labelled and specified by its template, in its namespace."""
        body = as_dict(owner)
        template = body["spec"]["template"]
        self.metadata["namespace"] = body["metadata"]["namespace"]
        self.owned_by(body)
        template_metadata = template.get("metadata") or {}
        self.labelled(template_metadata.get("labels"))
        if cluster_name := (body["metadata"].get("labels") or {}).get(names.CLUSTER_NAME_LABEL):
            self.in_cluster(cluster_name)
        for key, value in (template_metadata.get("annotations") or {}).items():
            self.annotated(key, value)
        self.body["spec"] = copy.deepcopy(template["spec"])
        return self

    def ready(self, since: float = 600) -> Self:
        """Running, its Node Ready for ``since`` seconds."""
        self.on_node(f"node-{self.metadata['name']}")
        self.status["phase"] = str(names.MachinePhase.RUNNING)
        return self.condition("Ready", "True", "Ready", since=since)

    def on_node(self, node_name: str) -> Self:
        """Linked to a Node, of which nothing more is said."""
        self.spec.setdefault("providerID", f"simulated:///{self.metadata['uid']}")
        self.status["nodeRef"] = {"apiVersion": "v1", "kind": "Node", "name": node_name, "uid": f"uid-{node_name}"}
        return self

    def not_ready(self, reason: str = "NodeNotReady", message: str = "", since: float = 60) -> Self:
        """It has a Node, which is not Ready."""
        self.on_node(f"node-{self.metadata['name']}")
        return self.condition("Ready", "False", reason, message, since)

    def pending(self, reason: str = "Provisioning", message: str = "", since: float = 60) -> Self:
        """No Node yet; ``reason`` says why."""
        self.status["phase"] = str(names.MachinePhase.PROVISIONING)
        return self.condition("Ready", "False", reason, message, since)

    def failed(self, reason: str = "InvalidConfiguration", message: str = "no such flavor") -> Self:
        """Terminally failed, in both families of fields."""
        self.status.update(
            phase=str(names.MachinePhase.FAILED),
            errorReason=reason,
            errorMessage=message,
            failureReason=reason,
            failureMessage=message,
        )
        return self.condition("Ready", "False", reason, message)

    def marked_for_deletion(self, value: str = "2026-06-01T11:59:00Z") -> Self:
        """As the Cluster Autoscaler marks its victim."""
        return self.annotated(names.DELETE_MACHINE_ANNOTATION, value)

    def priority(self, priority: int | str) -> Self:
        return self.annotated(names.DELETE_PRIORITY_ANNOTATION, str(priority))

    def ordinal(self, ordinal: int) -> Self:
        return self.annotated(names.ORDINAL_ANNOTATION, str(ordinal))

    def kubelet(self, version: str) -> Self:
        self.spec.setdefault("versions", {})["kubelet"] = version
        return self

    def provider_config(self, **config: Any) -> Self:
        self.spec["providerConfig"] = {"value": {**SIMULATED, **config}}
        return self

    def provider_id(self, provider_id: str) -> Self:
        self.spec["providerID"] = provider_id
        return self

    def in_domain(self, domain: str) -> Self:
        """Asked for in this failure domain; if it has a host, that is there."""
        self.spec["failureDomain"] = domain
        if self.spec.get("providerID"):
            self.status["failureDomain"] = domain
        return self

    def short(self, reason: str = "StockOut", message: str = "none left") -> Self:
        """Its provider has no host for it where it is asked for."""
        return self.pending(reason, message).condition("InfrastructureReady", "False", reason, message)

    def tainted(self, key: str, value: str = "", effect: str = "NoSchedule") -> Self:
        self.spec.setdefault("taints", []).append({"key": key, "value": value, "effect": effect})
        return self


class TemplateBuilder(Builder):
    """What MachineSet and MachineDeployment share: replicas, selector and template."""

    def __init__(self, name: str, namespace: str = "default") -> None:
        super().__init__(name, namespace)
        labels = {"pool": name}
        self.spec.update(
            {
                "replicas": 1,
                "selector": {"matchLabels": dict(labels)},
                "template": {
                    "metadata": {"labels": dict(labels)},
                    "spec": {"providerConfig": {"value": dict(SIMULATED)}, "versions": {"kubelet": "1.34.0"}},
                },
            }
        )

    @property
    def template(self) -> dict[str, Any]:
        template: dict[str, Any] = self.spec["template"]
        return template

    def replicas(self, replicas: int | None) -> Self:
        """None leaves the field out."""
        self.spec.pop("replicas", None)
        if replicas is not None:
            self.spec["replicas"] = replicas
        return self

    def spread_over(self, *domains: str) -> Self:
        self.spec["failureDomains"] = list(domains)
        return self

    def min_ready(self, seconds: int) -> Self:
        self.spec["minReadySeconds"] = seconds
        return self

    def delete_policy(self, policy: str) -> Self:
        self.spec["deletePolicy"] = policy
        return self

    def kubelet(self, version: str) -> Self:
        self.template["spec"].setdefault("versions", {})["kubelet"] = version
        return self

    def provider_config(self, **config: Any) -> Self:
        self.template["spec"]["providerConfig"] = {"value": {**SIMULATED, **config}}
        return self

    def template_label(self, key: str, value: str) -> Self:
        self.template["metadata"].setdefault("labels", {})[key] = value
        return self

    def template_annotation(self, key: str, value: str) -> Self:
        self.template["metadata"].setdefault("annotations", {})[key] = value
        return self

    def node_label(self, key: str, value: str) -> Self:
        self.template["spec"].setdefault("metadata", {}).setdefault("labels", {})[key] = value
        return self

    def taint(self, key: str, value: str = "", effect: str = "NoSchedule") -> Self:
        self.template["spec"].setdefault("taints", []).append({"key": key, "value": value, "effect": effect})
        return self

    def selecting(self, labels: Mapping[str, str]) -> Self:
        """Replace the selector only (to make it wrong)."""
        self.spec["selector"] = {"matchLabels": dict(labels)}
        return self


class MachineSetBuilder(TemplateBuilder):
    kind = "MachineSet"

    def of(self, owner: Builder | Mapping[str, Any], template_hash: str = "h1") -> Self:
        """As a MachineDeployment makes it: owned, with its template and the hash in labels and selector."""
        body = as_dict(owner)
        self.metadata["namespace"] = body["metadata"]["namespace"]
        self.owned_by(body)
        self.spec["template"] = copy.deepcopy(body["spec"]["template"])
        self.spec["selector"] = copy.deepcopy(body["spec"]["selector"])
        self.spec["selector"].setdefault("matchLabels", {})[names.TEMPLATE_HASH_LABEL] = template_hash
        self.template_label(names.TEMPLATE_HASH_LABEL, template_hash)
        self.labelled(self.template["metadata"]["labels"])
        if cluster_name := (body["metadata"].get("labels") or {}).get(names.CLUSTER_NAME_LABEL):
            self.in_cluster(cluster_name)
        return self

    def ordinals(self, next_: int, reserved: str = "") -> Self:
        """``reserved`` like "8-10,12"."""
        self.status["ordinals"] = {"next": next_, "reserved": reserved}
        return self

    def observed(self, generation: int | None = None) -> Self:
        self.status["observedGeneration"] = generation or self.metadata["generation"]
        return self

    def revision(self, revision: int) -> Self:
        self.annotated(names.REVISION_ANNOTATION, str(revision))
        return self.annotated(names.CAPI_REVISION_ANNOTATION, str(revision))


class MachineDeploymentBuilder(TemplateBuilder):
    kind = "MachineDeployment"

    def rolling(self, max_surge: int | str | None = None, max_unavailable: int | str | None = None) -> Self:
        limits = {"maxSurge": max_surge, "maxUnavailable": max_unavailable}
        given = {key: value for key, value in limits.items() if value is not None}
        self.spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": given}
        return self

    def rollout(self, **fields: Any) -> Self:
        """Further fields of ``strategy.rollingUpdate``, by their wire names."""
        self.spec.setdefault("strategy", {}).setdefault("rollingUpdate", {}).update(fields)
        return self

    def budget(self, nodes: int | str, **fields: Any) -> Self:
        """One more disruption budget."""
        self.spec.setdefault("strategy", {}).setdefault("disruptionBudgets", []).append({"nodes": nodes, **fields})
        return self

    def strategy(self, type_: str) -> Self:
        self.spec["strategy"] = {"type": type_}
        return self

    def on_delete(self) -> Self:
        return self.strategy("OnDelete")

    def paused(self) -> Self:
        self.spec["paused"] = True
        return self

    def history_limit(self, limit: int) -> Self:
        self.spec["revisionHistoryLimit"] = limit
        return self

    def progress_deadline(self, seconds: int) -> Self:
        self.spec["progressDeadlineSeconds"] = seconds
        return self


class ClusterBuilder(Builder):
    kind = "Cluster"

    def __init__(self, name: str, namespace: str = "default") -> None:
        super().__init__(name, namespace)
        self.spec["clusterNetwork"] = {
            "services": {"cidrBlocks": ["10.96.0.0/12"]},
            "pods": {"cidrBlocks": ["10.244.0.0/16"]},
            "serviceDomain": "cluster.local",
        }

    def paused(self) -> Self:
        self.spec["paused"] = True
        return self


class MachineClassBuilder(Builder):
    kind = "MachineClass"

    def __init__(self, name: str, namespace: str = "default") -> None:
        super().__init__(name, namespace)
        self.body["providerConfig"] = dict(SIMULATED)

    def provider_config(self, **config: Any) -> Self:
        self.body["providerConfig"] = {**SIMULATED, **config}
        return self


class NodeBuilder(Builder):
    api_version = "v1"
    kind = "Node"
    namespaced = False

    def of(self, machine_: Builder | Mapping[str, Any]) -> Self:
        """As the host of ``machine_`` registers it: same providerID, annotation and owner label."""
        body = as_dict(machine_)
        meta = body["metadata"]
        self.provider_id(body["spec"].get("providerID") or f"simulated:///{meta['uid']}")
        self.annotated(names.NODE_MACHINE_ANNOTATION, f"{meta['namespace']}/{meta['name']}")
        return self.labelled({names.NODE_OWNED_BY_LABEL: meta["uid"]})

    def provider_id(self, provider_id: str) -> Self:
        self.spec["providerID"] = provider_id
        return self

    def ready(self, since: float = 600) -> Self:
        return self.condition("Ready", "True", "KubeletReady", since=since)

    def not_ready(self, since: float = 60) -> Self:
        return self.condition("Ready", "False", "KubeletNotReady", since=since)

    def kubelet(self, version: str) -> Self:
        self.status.setdefault("nodeInfo", {})["kubeletVersion"] = version
        return self

    def address(self, address: str, type_: str = "InternalIP") -> Self:
        self.status.setdefault("addresses", []).append({"type": type_, "address": address})
        return self

    def tainted(self, key: str, value: str = "", effect: str = "NoSchedule") -> Self:
        self.spec.setdefault("taints", []).append({"key": key, "value": value, "effect": effect})
        return self

    def cordoned(self) -> Self:
        """By a person."""
        self.spec["unschedulable"] = True
        return self

    def draining_for(self, machine_uid: str) -> Self:
        """Closed by us."""
        self.annotated(names.NODE_CORDONED_FOR_ANNOTATION, machine_uid)
        return self.cordoned().tainted(names.DRAINING_TAINT, machine_uid)


def machine(name: str, namespace: str = "default") -> MachineBuilder:
    return MachineBuilder(name, namespace)


def machine_set(name: str, namespace: str = "default") -> MachineSetBuilder:
    return MachineSetBuilder(name, namespace)


def machine_deployment(name: str, namespace: str = "default") -> MachineDeploymentBuilder:
    return MachineDeploymentBuilder(name, namespace)


def cluster(name: str, namespace: str = "default") -> ClusterBuilder:
    return ClusterBuilder(name, namespace)


def machine_class(name: str, namespace: str = "default") -> MachineClassBuilder:
    return MachineClassBuilder(name, namespace)


def node(name: str) -> NodeBuilder:
    return NodeBuilder(name)
