"""A small world with an object of every kind, and hypothesis strategies that put arbitrary JSON anywhere into it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from hypothesis import strategies as st

from api import names, provisioning_names
from controllers.kernel.refs import Kind
from tests.builders.objects import cluster, machine, machine_class, machine_deployment, machine_set, node
from tests.builders.view import KINDS

Path = tuple[str | int, ...]


def world() -> list[dict[str, Any]]:
    """Valid objects of all kinds that name each other, fresh at each call; version 10 each."""
    md = machine_deployment("md").labelled({names.CLUSTER_NAME_LABEL: "c"}).build()
    ms = machine_set("ms").of(md).build()
    first, second, third = (machine(name).of(ms).ready().build() for name in ("m-1", "m-2", "m-3"))
    third["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    n = node("m-1").of(first).ready().build()
    objects = [
        cluster("c").build(),
        cluster("other").build(),
        md,
        ms,
        first,
        second,
        third,
        machine("alone", "elsewhere").build(),
        machine_class("class").build(),
        n,
        *_others(),
    ]
    for body in objects:
        body["metadata"].setdefault("resourceVersion", "10")
    return objects


def _others() -> Iterator[dict[str, Any]]:
    pod_spec = {
        "nodeName": "m-1",
        "containers": [
            {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}, "ports": [{"hostPort": 1}]}
        ],
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "nodeSelector": {"a": "b"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
                }
            },
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
                ]
            },
        },
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
        ],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}, {"name": "e", "emptyDir": {}}],
    }
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {**pod_spec, "nodeName": ""}}
    waiting = {
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        "phase": "Pending",
    }
    owned = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs", "controller": True}]
    yield _obj("MachineHealthCheck", "mhc", spec={"selector": {"matchLabels": {"app": "demo"}}, "maxUnhealthy": 1,
               "unhealthyConditions": [{"type": "Ready", "status": "False", "timeout": "5m"}]})  # fmt: skip
    yield _obj("MachineDrainRule", "rule", spec={"drain": {"behavior": "Skip", "order": 1},
               "machines": [{"selector": {"matchLabels": {"a": "b"}}}],
               "pods": [{"selector": {"matchLabels": {"a": "b"}}, "namespaceSelector": {}}]})  # fmt: skip
    yield _obj("Pod", "p-1", spec=pod_spec, status={"phase": "Running"}, ownerReferences=owned, labels={"a": "b"})
    yield _obj("Pod", "p-2", spec={**pod_spec, "nodeName": ""}, status=waiting, ownerReferences=owned)
    yield _obj("PodDisruptionBudget", "pdb", spec={"selector": {"matchLabels": {"a": "b"}}, "minAvailable": "50%"},
               status={"disruptionsAllowed": 0, "expectedPods": 1})  # fmt: skip
    yield _obj("DaemonSet", "ds", spec={"selector": {"matchLabels": {"a": "b"}}, "template": template})
    yield _obj("Namespace", "default", labels={"a": "b"}, spec={}, status={"phase": "Active"})
    yield _obj("PersistentVolume", "pv", spec={"claimRef": {"namespace": "default", "name": "claim"},
               "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": []}]}},
               "csi": {"driver": "d", "volumeHandle": "h"}})  # fmt: skip
    yield _obj("PersistentVolumeClaim", "claim", spec={"volumeName": "pv", "storageClassName": "sc"})
    yield _obj("StorageClass", "sc", provisioner="d", volumeBindingMode="WaitForFirstConsumer",
               allowedTopologies=[{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}])  # fmt: skip
    yield _obj("CSINode", "m-1", spec={"drivers": [{"name": "d", "nodeID": "n", "allocatable": {"count": 3}}]})
    yield _obj("VolumeAttachment", "va", spec={"nodeName": "m-1", "attacher": "d", "source": {
               "persistentVolumeName": "pv"}}, status={"attached": True})  # fmt: skip
    yield _obj("CertificateSigningRequest", "csr", spec={"request": "AA==", "signerName":
               "kubernetes.io/kubelet-serving", "username": "system:node:m-1", "groups": ["system:nodes"],
               "usages": ["server auth"]}, status={})  # fmt: skip
    yield _obj("ConfigMap", names.AUTOSCALER_MEMORY, namespace="kube-system", data={"a": "b"})
    yield _obj("ConfigMap", provisioning_names.PROVISIONING_CLASSES, namespace="kube-system", data={"a": "b"})
    yield _obj("Lease", names.AUTOSCALER_LEASE, namespace="kube-system", spec={"holderIdentity": "x",
               "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"})  # fmt: skip
    yield _obj("Secret", "c-kubeconfig", data={"value": "AA=="})
    yield _obj("PodTemplate", "pt", template=template)
    yield _obj("ProvisioningRequest", "pr", spec={"provisioningClassName":
               "check-capacity.autoscaling.x-k8s.io", "podSets": [{"count": 1, "podTemplateRef": {"name": "pt"}}],
               "parameters": {"a": "b"}}, status={"conditions": []})  # fmt: skip


def _obj(kind: str, name: str, namespace: str = "default", **fields: Any) -> dict[str, Any]:
    found = KINDS[kind]
    meta = {"name": name, "uid": f"uid-{kind}-{name}", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
    if found.namespaced:
        meta["namespace"] = namespace
    for part in ("labels", "annotations", "ownerReferences"):
        if part in fields:
            meta[part] = fields.pop(part)
    return {"apiVersion": found.api_version, "kind": kind, "metadata": meta, **copy.deepcopy(fields)}


def kind_of(obj: Mapping[str, Any]) -> Kind:
    return KINDS[obj["kind"]]


_FIELDS = (
    "template", "spec", "status", "metadata", "labels", "annotations", "ownerReferences", "finalizers", "taints",
    "conditions", "nodeRef", "addresses", "selector", "matchLabels", "matchExpressions", "replicas", "strategy",
    "rollingUpdate", "providerConfig", "providerSpec", "value", "valueFrom", "machineClass", "versions", "kubelet",
    "containerRuntime", "clusterName", "failureDomain", "failureDomains", "nodeDrainTimeout", "readinessGates",
    "controlPlaneEndpoint", "apiEndpoints", "paused", "deletionTimestamp", "creationTimestamp", "generation",
    "lastTransitionTime", "observedGeneration", "items", "podSets", "parameters", "capacity", "allocatable", "images",
    "configSource", "minReadySeconds", "revisionHistoryLimit", "rolloutAfter", "disruptionBudgets",
    "remediationTemplate",
    "errorReason", "errorMessage", "failureReason", "failureMessage", "lastUpdated", "providerStatus", "drain",
    "deletionPolicy", "deletePolicy", "inPlace", "remediation", "volumesAttached", "volumesInUse", "nodeInfo",
    "topologyKey", "key", "operator", "values", "name", "namespace", "uid", "kind", "type", "reason", "message",
)  # fmt: skip
_ANNOTATIONS = tuple(
    value
    for name, value in sorted(vars(names).items())
    if isinstance(value, str) and name.endswith(("_ANNOTATION", "_LABEL"))
)


def deep(levels: int) -> Any:
    """Lists and objects by turns, so many of them."""
    value: Any = "bottom"
    for level in range(levels):
        value = [value] if level % 2 else {"down": value}
    return value


scalars = (
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, -1, 2**31, 2**63 - 1, -(2**63), 2**64, 10**400, 1e308, -0.0, 0.5])
    | st.sampled_from(["", "x", "0", "-1", "9" * 5000, "1e999999", "5m", "-5m", "99999999999h", "150%", "%", "{", "[1]",
                       "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "2026-01-01T00:00:00Z", "٣", "x/y/z", "1Ei",
                       "\x00\x1b[2J", "1e400", "m", "c", "default/c", "Ready", "True", "OnDelete", "&a [*a]"])
    | st.text(max_size=5)
)  # fmt: skip
json = st.recursive(
    scalars | st.just(deep(100)),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_FIELDS) | st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
"""Any JSON value, with a liking for what has broken programs before."""


def paths(value: Any, above: Path = ()) -> Iterator[Path]:
    """All places of a JSON value, from the top down."""
    yield above
    if isinstance(value, dict):
        for name, each in value.items():
            yield from paths(each, (*above, name))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from paths(each, (*above, index))


def put(obj: dict[str, Any], path: Path, value: Any) -> None:
    """``value`` at ``path``."""
    place: Any = obj
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value


@st.composite
def changes(draw: st.DrawFn, obj: dict[str, Any]) -> dict[str, Any]:
    """``obj`` with one to three places replaced, or fields added. Its name and namespace stay, so that it is found."""
    changed = copy.deepcopy(obj)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from([each for each in paths(changed) if each]))
        place: Any = changed
        for step in path:
            place = place[step]
        if isinstance(place, dict) and draw(st.booleans()):
            annotated = path[-1] in ("annotations", "labels")
            name = draw(st.sampled_from(_ANNOTATIONS if annotated else _FIELDS))
            path = (*path, name)
        put(changed, path, copy.deepcopy(draw(json)))
    meta = changed["metadata"] if isinstance(changed.get("metadata"), dict) else {}
    changed["kind"] = obj["kind"]
    changed["metadata"] = {**meta, "name": obj["metadata"]["name"], "resourceVersion": "11"}
    if "namespace" in obj["metadata"]:
        changed["metadata"]["namespace"] = obj["metadata"]["namespace"]
    return changed
