"""Builders of a Machine and of what owns Machines. See ``tests.builders.objects``."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Self

from api import names
from tests.builders.body import SIMULATED, Builder, as_dict


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
