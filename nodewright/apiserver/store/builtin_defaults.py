"""What does the server itself fill in for the built-in kinds?

The defaulting functions of kubernetes/pkg/apis and the admission plugins that are on by default, as far as clients
without a kubelet, scheduler or network can tell. Compared with a kube-apiserver of version 1.36; fields that only
say that nothing was said (null times, empty structures of nodeInfo) are left out.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

from nodewright.apiserver.store.copying import deep_copy
from nodewright.apiserver.values import Obj, Resource

NAMESPACE_LABEL = "kubernetes.io/metadata.name"

_UNREACHABLE_TOLERATIONS = tuple(
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for name in ("not-ready", "unreachable")
)
"""What the DefaultTolerationSeconds admission plugin gives every Pod."""


def prepare_new(resource: Resource, obj: Obj) -> None:
    """Fill in what a new object of a built-in kind starts with. Changes `obj` in place, but nothing it shares."""
    prepare = _NEW.get(resource.group_kind)
    if prepare is not None:
        prepare(obj)


def decode(resource: Resource, obj: Obj) -> None:
    """Fill in what decoding a built-in kind fills in: that belongs to whoever sent the object.

    Changes `obj` in place, but nothing it shares.
    """
    if resource.group_kind == "Namespace":
        _label_namespace(obj)
    elif resource.group_kind == "Secret":
        _new_secret(obj)
    elif resource.group_kind == "Pod":
        obj["spec"] = {"enableServiceLinks": True, **_pod_spec(obj.get("spec") or {})}
    elif resource.group_kind in _WORKLOADS:
        obj["spec"] = _workload_spec(resource.group_kind, obj)


def prepare_changed(resource: Resource, obj: Obj, old: Obj) -> None:
    """Fill in what an update of a built-in kind may leave out. Changes `obj` in place, but nothing it shares."""
    if resource.group_kind == "Namespace":
        _label_namespace(obj)
    elif resource.group_kind == "Secret":
        _secret_data(obj)
        obj.setdefault("type", old.get("type", "Opaque"))
    elif resource.group_kind == "Pod":
        obj["spec"] = _pod_spec(obj.get("spec") or {})
    elif resource.group_kind in _WORKLOADS:
        obj["spec"] = _workload_spec(resource.group_kind, obj)


def _new_namespace(obj: Obj) -> None:
    spec = dict(obj.get("spec") or {})
    finalizers = list(spec.get("finalizers") or ())
    spec["finalizers"] = finalizers if "kubernetes" in finalizers else [*finalizers, "kubernetes"]
    obj["spec"] = spec
    obj["status"] = {"phase": "Active"}
    _label_namespace(obj)


def _label_namespace(obj: Obj) -> None:
    metadata = obj["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), NAMESPACE_LABEL: metadata.get("name", "")}


def _new_pod(obj: Obj) -> None:
    spec = _pod_spec(obj.get("spec") or {})
    spec.setdefault("enableServiceLinks", True)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    tolerations = list(spec.get("tolerations") or ())
    keys = {toleration.get("key") for toleration in tolerations if toleration.get("effect") in (None, "", "NoExecute")}
    if None not in keys and "" not in keys:
        tolerations += [dict(t) for t in _UNREACHABLE_TOLERATIONS if t["key"] not in keys]
    spec["tolerations"] = tolerations
    obj["spec"] = spec
    obj["status"] = {"phase": "Pending", "qosClass": _qos_class(spec)}


def _pod_spec(spec: Obj) -> Obj:
    filled = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        **spec,
    }
    for field in ("containers", "initContainers"):
        if spec.get(field):
            filled[field] = [_container(container) for container in spec[field]]
    return filled


def _container(container: Obj) -> Obj:
    image = container.get("image") or ""
    tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
    newest = tag in ("", "latest") and "@" not in image
    resources = dict(container.get("resources") or {})
    if resources.get("limits"):
        resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    filled = {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "Always" if newest else "IfNotPresent",
        **container,
        "resources": resources,
    }
    if container.get("ports"):
        filled["ports"] = [{"protocol": "TCP", **port} for port in container["ports"]]
    return filled


def _qos_class(spec: Obj) -> str:
    resources = [container.get("resources") or {} for container in spec.get("containers") or ()]
    if not any(entry.get("requests") or entry.get("limits") for entry in resources):
        return "BestEffort"
    for entry in resources:
        limits, requests = entry.get("limits") or {}, entry.get("requests") or {}
        if any(name not in limits or requests.get(name) != limits[name] for name in ("cpu", "memory")):
            return "Burstable"
    return "Guaranteed"


def _new_node(obj: Obj) -> None:
    status = dict(obj.get("status") or {})
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])
        obj["status"] = status


def _new_secret(obj: Obj) -> None:
    _secret_data(obj)
    obj.setdefault("type", "Opaque")


def _secret_data(obj: Obj) -> None:
    texts = obj.pop("stringData", None)
    if texts:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in texts.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}


def _new_pending(obj: Obj) -> None:
    obj["status"] = {"phase": "Pending"}


def _new_budget(obj: Obj) -> None:
    fields = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")
    obj["status"] = dict.fromkeys(fields, 0)


def _new_priority_class(obj: Obj) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _new_pod_template(obj: Obj) -> None:
    obj["template"] = _template(obj.get("template") or {})


def _template(template: Obj) -> Obj:
    return {**template, "spec": _pod_spec(template.get("spec") or {})}


_ROLLING = {"type": "RollingUpdate"}
_WORKLOADS: dict[str, tuple[Obj, Obj]] = {
    "ReplicationController": ({"replicas": 1}, {"replicas": 0}),
    "ReplicaSet.apps": ({"replicas": 1}, {"replicas": 0}),
    "Deployment.apps": (
        {
            "replicas": 1,
            "strategy": {**_ROLLING, "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
        },
        {},
    ),
    "StatefulSet.apps": (
        {
            "replicas": 1,
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {**_ROLLING, "rollingUpdate": {"partition": 0}},
            "revisionHistoryLimit": 10,
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        },
        {"replicas": 0, "availableReplicas": 0},
    ),
    "DaemonSet.apps": (
        {
            "updateStrategy": {**_ROLLING, "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
            "revisionHistoryLimit": 10,
        },
        {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0},
    ),
    "Job.batch": (
        {"parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False},
        {},
    ),
}
"""Kind → the defaults of its spec beside the Pod template, and the status it starts with."""


def _workload_spec(kind: str, obj: Obj) -> Obj:
    defaults, _ = _WORKLOADS[kind]
    spec = obj.get("spec") or {}
    filled = {**deep_copy(defaults), **spec}
    if spec.get("template"):
        filled["template"] = _template(spec["template"])
    return filled


def _new_workload(kind: str) -> Callable[[Obj], None]:
    def prepare(obj: Obj) -> None:
        obj["spec"] = _workload_spec(kind, obj)
        obj["status"] = dict(_WORKLOADS[kind][1])

    return prepare


def _claim(obj: Obj) -> None:
    """Fill in how many devices a ResourceClaim asks for (pkg/apis/resource/v1/defaults.go)."""
    spec = obj.get("spec") or {}
    obj["spec"] = {**spec, **_device_claim(spec)}


def _claim_template(obj: Obj) -> None:
    template = obj.get("spec") or {}
    spec = template.get("spec") or {}
    obj["spec"] = {**template, "spec": {**spec, **_device_claim(spec)}}


def _device_claim(spec: Obj) -> Obj:
    devices = spec.get("devices")
    if not devices or not devices.get("requests"):
        return {}
    return {"devices": {**devices, "requests": [_device_request(request) for request in devices["requests"]]}}


def _device_request(request: Obj) -> Obj:
    filled = dict(request)
    if request.get("exactly"):
        filled["exactly"] = _counted(request["exactly"])
    if request.get("firstAvailable"):
        filled["firstAvailable"] = [_counted(choice) for choice in request["firstAvailable"]]
    return filled


def _counted(request: Obj) -> Obj:
    filled = {**request, "allocationMode": request.get("allocationMode") or "ExactCount"}
    if filled["allocationMode"] == "ExactCount" and not filled.get("count"):
        filled["count"] = 1
    return filled


_NEW: dict[str, Callable[[Obj], None]] = {
    "Namespace": _new_namespace,
    "Node": _new_node,
    "Pod": _new_pod,
    "PodTemplate": _new_pod_template,
    "Secret": _new_secret,
    "PersistentVolume": _new_pending,
    "PersistentVolumeClaim": _new_pending,
    "PodDisruptionBudget.policy": _new_budget,
    "ResourceClaim.resource.k8s.io": _claim,
    "ResourceClaimTemplate.resource.k8s.io": _claim_template,
    "PriorityClass.scheduling.k8s.io": _new_priority_class,
    **{kind: _new_workload(kind) for kind in _WORKLOADS},
}
