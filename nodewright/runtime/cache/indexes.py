"""Which indexes each kind has: the ones that ``controllers.kernel.view`` promises, as functions of one object.

Objects come from outside: a wrong type in a field gives no index value, never an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from controllers.kernel import joining, view
from controllers.kernel.node_policy import owner_uid
from controllers.kernel.ownership import cluster_name_of, controller_uid
from controllers.kernel.refs import (
    CERTIFICATE_SIGNING_REQUEST,
    CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_DRAIN_RULE,
    MACHINE_HEALTH_CHECK,
    MACHINE_SET,
    NODE,
    PERSISTENT_VOLUME,
    POD,
    POD_DISRUPTION_BUDGET,
    VOLUME_ATTACHMENT,
    Kind,
    Obj,
    runs_control_plane,
)

Indexer = Callable[[Obj], str | None]
"""The value an object is filed under, or None: not at all."""


def _at(obj: Obj, *path: str) -> Any:
    value: Any = obj
    for name in path:
        if not isinstance(value, dict):  # what JSON gives; asked for a dozen times for each object that changes
            return None
        value = value.get(name)
    return value


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def owner(obj: Obj) -> str | None:
    """Uid of the controlling owner; "" for an orphan."""
    return controller_uid(obj)


def namespace(obj: Obj) -> str | None:
    return _text(obj["metadata"].get("namespace"))


def provider_id(obj: Obj) -> str | None:
    return _text(_at(obj, "spec", "providerID"))


def node_of_machine(obj: Obj) -> str | None:
    return _text(_at(obj, "status", "nodeRef", "name"))


def node_it_is_on(obj: Obj) -> str | None:
    return _text(_at(obj, "spec", "nodeName"))


def node_owner(obj: Obj) -> str | None:
    """UID of the Machine that a Node is recorded for."""
    return owner_uid(obj) or None


def claim(obj: Obj) -> str | None:
    """``namespace/name`` of the claim that a PersistentVolume is bound to."""
    name = _text(_at(obj, "spec", "claimRef", "name"))
    return f"{_text(_at(obj, 'spec', 'claimRef', 'namespace')) or ''}/{name}" if name else None


def machine_class(obj: Obj) -> str | None:
    """``namespace/name`` of the class; all three generations of the field are read."""
    for field in ("providerConfig", "providerSpec"):
        reference = _at(obj, "spec", field, "valueFrom", "machineClass")
        name = _text(_at(reference, "name")) if isinstance(reference, Mapping) else None
        if name:
            return f"{_text(_at(reference, 'namespace')) or obj['metadata'].get('namespace', '')}/{name}"
    return None


def cluster_name(obj: Obj) -> str | None:
    """``namespace/name`` of the Cluster that it is a member of, by label or by ``clusterName``."""
    name = cluster_name_of(obj)
    return f"{obj['metadata'].get('namespace', '')}/{name}" if name else None


def control_plane_of(obj: Obj) -> str | None:
    return cluster_name(obj) if runs_control_plane(obj) else None


def node_of_request(obj: Obj) -> str | None:
    from controllers.certificatesigningrequest.request import node_name_of  # noqa: PLC0415  (only if it is watched)

    return node_name_of(obj) or None


INDEXES: Mapping[Kind, Mapping[str, Indexer]] = {
    MACHINE: {
        view.OWNER: owner,
        view.NAMESPACE: namespace,
        view.PROVIDER_ID: provider_id,
        view.NODE_NAME: node_of_machine,
        view.HOST_NAME: view.host_name_of,
        view.MACHINE_CLASS_REF: machine_class,
        view.CLUSTER_NAME: cluster_name,
        view.CONTROL_PLANE_OF: control_plane_of,
        view.COMING_UP: joining.coming_up,
        view.JOINED: joining.joined,
    },
    MACHINE_SET: {view.OWNER: owner, view.NAMESPACE: namespace, view.CLUSTER_NAME: cluster_name},
    MACHINE_DEPLOYMENT: {view.NAMESPACE: namespace, view.CLUSTER_NAME: cluster_name},
    CONTROL_PLANE: {view.NAMESPACE: namespace, view.CLUSTER_NAME: cluster_name},
    MACHINE_HEALTH_CHECK: {view.NAMESPACE: namespace},
    CERTIFICATE_SIGNING_REQUEST: {view.NODE_NAME: node_of_request},
    NODE: {view.PROVIDER_ID: provider_id, view.NODE_OWNER: node_owner},
    POD: {view.NODE_NAME: node_it_is_on},
    POD_DISRUPTION_BUDGET: {view.NAMESPACE: namespace},
    MACHINE_DRAIN_RULE: {view.NAMESPACE: namespace},
    VOLUME_ATTACHMENT: {view.NODE_NAME: node_it_is_on},
    PERSISTENT_VOLUME: {view.CLAIM: claim},
}
