"""Whole groups that a scaler makes, with their first size, and takes away again once they are empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controllers.kernel.actions import Create, Delete
from controllers.kernel.refs import MACHINE_DEPLOYMENT, Obj
from controllers.scaling.node_group import NodeGroup


def make(group: NodeGroup, body: Obj, nodes: int, *, why: str) -> Create:
    """``body``: the MachineDeployment without a size. At most the group's maximum, in the write that makes it."""
    spec: Mapping[str, Any] = body["spec"]
    return Create(MACHINE_DEPLOYMENT, {**body, "spec": {"replicas": group.clamped(nodes), **spec}}, why)


def unmake(group: NodeGroup, *, why: str) -> Delete:
    """Refused by the API server (409) if the group has changed since it was read."""
    return Delete(group.ref, why, resource_version=group.resource_version)
