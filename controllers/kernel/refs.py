"""Which object is meant: kinds, keys and references."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.reading import mapping as mapping  # noqa: PLC0414 - readers import it from here
from api.reading import spec_of as spec_of  # noqa: PLC0414 - likewise

Obj = Mapping[str, Any]
"""A Kubernetes object as it came over the wire. Read only: the cache hands out its own copy of the world."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A served resource: ``group`` is "" for core; ``plural`` is the path segment."""

    group: str
    version: str
    name: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return self.name


CLUSTER = Kind("cluster.k8s.io", "v1alpha1", "Cluster", "clusters")
CONTROL_PLANE = Kind("cluster.k8s.io", "v1alpha1", "ControlPlane", "controlplanes")
MACHINE = Kind("cluster.k8s.io", "v1alpha1", "Machine", "machines")
MACHINE_SET = Kind("cluster.k8s.io", "v1alpha1", "MachineSet", "machinesets")
MACHINE_DEPLOYMENT = Kind("cluster.k8s.io", "v1alpha1", "MachineDeployment", "machinedeployments")
MACHINE_CLASS = Kind("cluster.k8s.io", "v1alpha1", "MachineClass", "machineclasses")
MACHINE_HEALTH_CHECK = Kind("cluster.k8s.io", "v1alpha1", "MachineHealthCheck", "machinehealthchecks")
MACHINE_DRAIN_RULE = Kind("cluster.k8s.io", "v1alpha1", "MachineDrainRule", "machinedrainrules")
NODE = Kind("", "v1", "Node", "nodes", namespaced=False)
POD = Kind("", "v1", "Pod", "pods")
NAMESPACE = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
PERSISTENT_VOLUME = Kind("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
SECRET = Kind("", "v1", "Secret", "secrets")
SERVICE = Kind("", "v1", "Service", "services")
ENDPOINTS = Kind("", "v1", "Endpoints", "endpoints")
EVENT = Kind("", "v1", "Event", "events")
CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps")
CLUSTER_ROLE_BINDING = Kind(
    "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases")
CERTIFICATE_SIGNING_REQUEST = Kind(
    "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False
)
POD_DISRUPTION_BUDGET = Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
DAEMON_SET = Kind("apps", "v1", "DaemonSet", "daemonsets")
DEPLOYMENT = Kind("apps", "v1", "Deployment", "deployments")
REPLICA_SET = Kind("apps", "v1", "ReplicaSet", "replicasets")
STATEFUL_SET = Kind("apps", "v1", "StatefulSet", "statefulsets")
JOB = Kind("batch", "v1", "Job", "jobs")
LIMIT_RANGE = Kind("", "v1", "LimitRange", "limitranges")
RESOURCE_QUOTA = Kind("", "v1", "ResourceQuota", "resourcequotas")
PERSISTENT_VOLUME_CLAIM = Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
STORAGE_CLASS = Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False)
CSI_NODE = Kind("storage.k8s.io", "v1", "CSINode", "csinodes", namespaced=False)
POD_TEMPLATE = Kind("", "v1", "PodTemplate", "podtemplates")
PROVISIONING_REQUEST = Kind("autoscaling.x-k8s.io", "v1", "ProvisioningRequest", "provisioningrequests")
CAPACITY_BUFFER = Kind("autoscaling.x-k8s.io", "v1beta1", "CapacityBuffer", "capacitybuffers")
CAPACITY_QUOTA = Kind("autoscaling.x-k8s.io", "v1beta1", "CapacityQuota", "capacityquotas", namespaced=False)
POD_GROUP_ALPHA2 = Kind("scheduling.k8s.io", "v1alpha2", "PodGroup", "podgroups")
POD_GROUP_ALPHA3 = Kind("scheduling.k8s.io", "v1alpha3", "PodGroup", "podgroups")
POD_GROUP = Kind("scheduling.k8s.io", "v1beta1", "PodGroup", "podgroups")
COSCHEDULING_POD_GROUP = Kind("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups")
VOLCANO_POD_GROUP = Kind("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups")
VOLUME_ATTACHMENT = Kind("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", namespaced=False)

WORKLOAD_KINDS = frozenset(
    {
        NODE,
        POD,
        POD_DISRUPTION_BUDGET,
        DAEMON_SET,
        DEPLOYMENT,
        NAMESPACE,
        PERSISTENT_VOLUME,
        PERSISTENT_VOLUME_CLAIM,
        STORAGE_CLASS,
        CSI_NODE,
        VOLUME_ATTACHMENT,
        REPLICA_SET,
        STATEFUL_SET,
        JOB,
        RESOURCE_QUOTA,
        LIMIT_RANGE,
        POD_TEMPLATE,
        PROVISIONING_REQUEST,
        CAPACITY_BUFFER,
        CAPACITY_QUOTA,
        POD_GROUP_ALPHA2,
        POD_GROUP_ALPHA3,
        POD_GROUP,
        COSCHEDULING_POD_GROUP,
        VOLCANO_POD_GROUP,
        LEASE,
        CERTIFICATE_SIGNING_REQUEST,
        SERVICE,
        ENDPOINTS,
    }
)
"""What lives in a Cluster's own API, if it has one (``kernel/node_policy.py``); all else is with its Machines."""
OPTIONAL_KINDS = frozenset({PROVISIONING_REQUEST, CAPACITY_BUFFER, CAPACITY_QUOTA})
"""Of those: whose CustomResourceDefinitions not every workload cluster has. Where they are missing there are none."""


def guessed_kind(api_version: str, kind: str) -> Kind:
    """A namespaced kind that somebody else serves. Its plural is guessed as Kubernetes itself guesses it."""
    group, slash, version = api_version.partition("/")
    lower = kind.lower()
    if lower.endswith("s"):
        plural = f"{lower}es"
    else:
        plural = f"{lower.removesuffix('y')}ies" if lower.endswith("y") else f"{lower}s"
    return Kind(group if slash else "", version if slash else api_version, kind, plural)


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """Namespace and name; ``namespace`` is "" for cluster-scoped objects."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Ref:
    """One object to act on. A ``uid`` makes the action refuse a namesake that came later."""

    kind: Kind
    key: Key
    uid: str = ""

    def __str__(self) -> str:
        return f"{self.kind.name} {self.key}"


def key_of(obj: Obj) -> Key:
    """The cache holds no object without a name (``nodewright.runtime.cache.shapes``)."""
    meta = obj["metadata"]
    return Key(meta.get("namespace") or "", meta["name"])


def uid_of(obj: Obj) -> str:
    return _text(obj["metadata"].get("uid"))


def ref_of(kind: Kind, obj: Obj) -> Ref:
    return Ref(kind, key_of(obj), uid_of(obj))


def resource_version_of(obj: Obj) -> str:
    return _text(obj["metadata"].get("resourceVersion"))


def runs_control_plane(machine: Obj) -> bool:
    """As KEP-3 has it: only such a Machine asks for a version of the control plane."""
    return bool(mapping(spec_of(machine).get("versions")).get("controlPlane"))


def is_deleting(obj: Obj) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def labels_of(obj: Obj) -> Mapping[str, str]:
    return _texts(obj["metadata"].get("labels"))


def annotations_of(obj: Obj) -> Mapping[str, str]:
    return _texts(obj["metadata"].get("annotations"))


def generation_of(obj: Obj) -> int:
    generation = obj["metadata"].get("generation")
    return generation if isinstance(generation, int) else 0


Intent = tuple[Any, ...]


def intent_of(obj: Obj) -> Intent:
    """What people and programs want of an object: all but its status, which makes another resourceVersion too."""
    texts = (frozenset(labels_of(obj).items()), frozenset(annotations_of(obj).items()))
    return uid_of(obj), generation_of(obj), is_deleting(obj), *texts


def status_of(obj: Obj) -> Mapping[str, Any]:
    return mapping(obj.get("status"))


def objects(value: Any) -> tuple[Mapping[str, Any], ...]:
    """The objects in ``value`` if it is a list of some, else none."""
    if not isinstance(value, list | tuple):
        return ()
    return tuple(each for each in value if isinstance(each, dict))


def _texts(value: Any) -> Mapping[str, str]:
    return value if isinstance(value, dict) else _EMPTY


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


_EMPTY: Mapping[str, Any] = {}
