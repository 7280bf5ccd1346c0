"""Which kinds does the server know without a CustomResourceDefinition, and how do they differ from custom ones?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from nodewright.apiserver.values import Resource, ScalePaths


@dataclass(frozen=True, slots=True)
class Traits:
    """How the server treats a kind; the source of each is the kind's strategy in kubernetes/pkg/registry.

    `counts_generation`: metadata.generation is kept. `unconditional_update`: a PUT needs no resourceVersion.
    `creates_on_update`: a PUT of what is not there creates it. `returns_deleted`: DELETE answers with the object.
    `keeps_status_on_create`: the status of a new object is taken from the body. `orphans_dependents`: dependents
    are kept unless the delete says otherwise. `metadata_with_status`: a write to /status may change metadata.
    """

    counts_generation: bool = False
    unconditional_update: bool = True
    creates_on_update: bool = False
    returns_deleted: bool = False
    keeps_status_on_create: bool = False
    orphans_dependents: bool = False
    metadata_with_status: bool = True


CUSTOM_TRAITS = Traits(counts_generation=True, unconditional_update=False, metadata_with_status=False)


class _Row(NamedTuple):
    kind: str
    plural: str
    namespaced: bool = True
    short_names: str = ""
    subresources: str = ""
    categories: str = ""
    traits: Traits = Traits()
    fields: str = ""


_RETURNED = Traits(returns_deleted=True)
_WORKLOAD = Traits(counts_generation=True)
_RETURNED_WITH_GENERATION = Traits(returns_deleted=True, counts_generation=True)
_POD = Traits(counts_generation=True, returns_deleted=True)
_RBAC = Traits(creates_on_update=True, returns_deleted=True)
_PLACED = Traits(creates_on_update=True)
_EVENT_FIELDS = (
    "involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid involvedObject.apiVersion "
    "involvedObject.resourceVersion involvedObject.fieldPath reason reportingComponent source type"
)
_POD_FIELDS = (
    "spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork status.phase "
    "status.podIP status.nominatedNodeName"
)

_TABLE: dict[tuple[str, str], tuple[_Row, ...]] = {
    ("", "v1"): (
        _Row("Namespace", "namespaces", False, "ns", "status finalize", fields="status.phase", traits=_RETURNED),
        _Row(
            "Node",
            "nodes",
            False,
            "no",
            "status",
            traits=Traits(keeps_status_on_create=True),
            fields="spec.unschedulable",
        ),
        _Row("Pod", "pods", True, "po", "status eviction binding", "all", _POD, _POD_FIELDS),
        _Row("Secret", "secrets", fields="type"),
        _Row("ConfigMap", "configmaps", True, "cm"),
        _Row("Event", "events", True, "ev", traits=_PLACED, fields=_EVENT_FIELDS),
        _Row("ServiceAccount", "serviceaccounts", True, "sa", "token", traits=_RETURNED),
        _Row("PodTemplate", "podtemplates", traits=Traits(returns_deleted=True, counts_generation=True)),
        _Row("PersistentVolume", "persistentvolumes", False, "pv", "status", traits=_RETURNED),
        _Row("PersistentVolumeClaim", "persistentvolumeclaims", True, "pvc", "status", traits=_RETURNED),
        _Row("Service", "services", True, "svc", "status", "all", Traits(returns_deleted=True, creates_on_update=True)),
        _Row("Endpoints", "endpoints", True, "ep", traits=_PLACED),
        _Row("ReplicationController", "replicationcontrollers", True, "rc", "status scale", "all", _WORKLOAD),
        _Row("ResourceQuota", "resourcequotas", True, "quota", "status", traits=_RETURNED),
        _Row("LimitRange", "limitranges", True, "limits"),
    ),
    ("apps", "v1"): (
        _Row("DaemonSet", "daemonsets", True, "ds", "status", "all", _WORKLOAD),
        _Row("Deployment", "deployments", True, "deploy", "status scale", "all", _WORKLOAD),
        _Row("ReplicaSet", "replicasets", True, "rs", "status scale", "all", _WORKLOAD, "status.replicas"),
        _Row("StatefulSet", "statefulsets", True, "sts", "status scale", "all", _WORKLOAD),
        _Row("ControllerRevision", "controllerrevisions"),
    ),
    ("batch", "v1"): (
        _Row(
            "Job",
            "jobs",
            True,
            "",
            "status",
            "all",
            Traits(counts_generation=True, orphans_dependents=True),
            "status.successful",
        ),
        _Row("CronJob", "cronjobs", True, "cj", "status", "all", _WORKLOAD),
    ),
    ("policy", "v1"): (
        _Row(
            "PodDisruptionBudget",
            "poddisruptionbudgets",
            True,
            "pdb",
            "status",
            traits=Traits(counts_generation=True, unconditional_update=False),
        ),
    ),
    ("coordination.k8s.io", "v1"): (
        _Row("Lease", "leases", traits=Traits(unconditional_update=False, creates_on_update=True)),
    ),
    ("events.k8s.io", "v1"): (
        _Row(
            "Event",
            "events",
            True,
            "ev",
            traits=_PLACED,
            fields="regarding.kind regarding.namespace regarding.name regarding.uid regarding.apiVersion "
            "regarding.resourceVersion regarding.fieldPath reason reportingController type",
        ),
    ),
    ("storage.k8s.io", "v1"): (
        _Row("StorageClass", "storageclasses", False, "sc", traits=_RETURNED),
        _Row("VolumeAttachment", "volumeattachments", False, "", "status", traits=_RETURNED),
        _Row("CSINode", "csinodes", False, traits=_RETURNED),
        _Row("CSIDriver", "csidrivers", False, traits=_RETURNED),
        _Row("CSIStorageCapacity", "csistoragecapacities", True),
        _Row("VolumeAttributesClass", "volumeattributesclasses", False, "vac", traits=_RETURNED),
    ),
    # What Cluster Autoscaler and kube-scheduler wait for before they do anything, be there devices or not.
    ("resource.k8s.io", "v1"): (
        _Row("DeviceClass", "deviceclasses", False, traits=_RETURNED_WITH_GENERATION),
        _Row("ResourceClaim", "resourceclaims", True, "", "status", traits=_RETURNED),
        _Row("ResourceClaimTemplate", "resourceclaimtemplates", traits=_RETURNED),
        _Row(
            "ResourceSlice",
            "resourceslices",
            False,
            traits=_RETURNED_WITH_GENERATION,
            fields="spec.nodeName spec.driver",
        ),
    ),
    ("node.k8s.io", "v1"): (_Row("RuntimeClass", "runtimeclasses", False),),
    ("scheduling.k8s.io", "v1"): (
        _Row("PriorityClass", "priorityclasses", False, "pc", traits=Traits(counts_generation=True)),
    ),
    ("rbac.authorization.k8s.io", "v1"): (
        _Row("Role", "roles", traits=_RBAC),
        _Row("RoleBinding", "rolebindings", traits=_RBAC),
        _Row("ClusterRole", "clusterroles", False, traits=_RBAC),
        _Row("ClusterRoleBinding", "clusterrolebindings", False, traits=_RBAC),
    ),
    ("admissionregistration.k8s.io", "v1"): (
        _Row(
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
            False,
            "",
            "",
            "api-extensions",
            Traits(counts_generation=True, unconditional_update=False),
        ),
        _Row(
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
            False,
            "",
            "",
            "api-extensions",
            Traits(counts_generation=True, unconditional_update=False),
        ),
    ),
    ("certificates.k8s.io", "v1"): (
        _Row(
            "CertificateSigningRequest",
            "certificatesigningrequests",
            False,
            "csr",
            "status approval",
            fields="spec.signerName",
        ),
    ),
    ("apiextensions.k8s.io", "v1"): (
        _Row(
            "CustomResourceDefinition",
            "customresourcedefinitions",
            False,
            "crd crds",
            "status",
            "api-extensions",
            Traits(counts_generation=True, unconditional_update=False),
        ),
    ),
}

_SCALE = ScalePaths(".spec.replicas", ".status.replicas")
"""The built-in workloads show their selector, an object in spec, as text; see scale.py."""


def builtin_kinds() -> Iterator[tuple[Resource, Traits]]:
    """Give each built-in kind with its traits, in the order in which discovery lists them."""
    for (group, version), rows in _TABLE.items():
        for row in rows:
            yield _resource(group, version, row), row.traits


def _resource(group: str, version: str, row: _Row) -> Resource:
    subresources = frozenset(row.subresources.split())
    return Resource(
        group=group,
        version=version,
        kind=row.kind,
        plural=row.plural,
        singular=row.kind.lower(),
        list_kind=f"{row.kind}List",
        namespaced=row.namespaced,
        short_names=tuple(row.short_names.split()),
        categories=tuple(row.categories.split()),
        subresources=subresources,
        scale=_SCALE if "scale" in subresources else None,
        selectable_fields=tuple(row.fields.split()),
    )
