"""View → what a drain has to know beside the Node itself. Read only while a Machine drains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from controllers.drain import rules
from controllers.drain.rules import NO_RULES, Rules
from controllers.kernel.pausing import cluster_of
from controllers.kernel.refs import (
    DAEMON_SET,
    MACHINE_DRAIN_RULE,
    NAMESPACE,
    PERSISTENT_VOLUME,
    POD,
    POD_DISRUPTION_BUDGET,
    VOLUME_ATTACHMENT,
    Key,
    Kind,
    Obj,
    key_of,
    labels_of,
    spec_of,
    uid_of,
)
from controllers.kernel.view import CLAIM, NODE_NAME, View
from controllers.kernel.view import NAMESPACE as BY_NAMESPACE

READS: tuple[Kind, ...] = (
    POD,
    POD_DISRUPTION_BUDGET,
    DAEMON_SET,
    MACHINE_DRAIN_RULE,
    NAMESPACE,
    VOLUME_ATTACHMENT,
    PERSISTENT_VOLUME,
)
"""Kinds that must be completely read before anything is drained."""


@dataclass(frozen=True, slots=True)
class DrainContext:
    """``pods`` are those of the Node, ``budgets`` those of their namespaces.

    ``daemon_sets``: uids of the living ones among their owners. ``namespaces``: labels by name. ``attachments``: the
    Node's VolumeAttachments. ``volumes``: PersistentVolumes by the claim (``namespace/name``) of one of the pods.
    """

    pods: tuple[Obj, ...] = ()
    budgets: tuple[Obj, ...] = ()
    daemon_sets: frozenset[str] = frozenset()
    rules: Rules = NO_RULES
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    attachments: tuple[Obj, ...] = ()
    volumes: Mapping[str, Obj] = field(default_factory=dict)


NO_CONTEXT = DrainContext()


def observe(machine: Obj, node: Obj, view: View) -> DrainContext:
    """All that the drain of ``node``, the Node of ``machine``, is decided on."""
    objects = view.indexed(MACHINE_DRAIN_RULE, BY_NAMESPACE, key_of(machine).namespace)
    return replace(drain_context(node, view), rules=rules.for_machine(machine, cluster_of(machine, view), objects))


def drain_context(node: Obj, view: View) -> DrainContext:
    """The same for a Node that need not have a Machine: nobody made rules for it."""
    name = node["metadata"]["name"]
    pods = tuple(view.indexed(POD, NODE_NAME, name))
    namespaces = sorted({key_of(pod).namespace for pod in pods})
    owners = {uid: view.by_uid(DAEMON_SET, uid) for pod in pods for uid in _daemon_set_of(pod)}
    claims = {claim for pod in pods for claim in claims_of(pod)}
    bound = {claim: view.indexed(PERSISTENT_VOLUME, CLAIM, claim) for claim in sorted(claims)}
    return DrainContext(
        pods=pods,
        budgets=tuple(b for space in namespaces for b in view.indexed(POD_DISRUPTION_BUDGET, BY_NAMESPACE, space)),
        daemon_sets=frozenset(uid_of(owner) for owner in owners.values() if owner is not None),
        namespaces={space: _labels_of_namespace(space, view) for space in namespaces},
        attachments=tuple(view.indexed(VOLUME_ATTACHMENT, NODE_NAME, name)),
        volumes={claim: found[0] for claim, found in bound.items() if found},
    )


def claims_of(pod: Obj) -> Iterator[str]:
    """``namespace/name`` of each PersistentVolumeClaim that the pod mounts."""
    key = key_of(pod)
    for volume in spec_of(pod).get("volumes") or ():
        claim: Any = volume.get("persistentVolumeClaim")
        if isinstance(claim, Mapping) and claim.get("claimName"):
            yield f"{key.namespace}/{claim['claimName']}"
        elif volume.get("ephemeral"):
            yield f"{key.namespace}/{key.name}-{volume.get('name')}"  # as Kubernetes names the claim that it makes


def _daemon_set_of(pod: Obj) -> Iterator[str]:
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and owner.get("kind") == DAEMON_SET.name:
            yield str(owner.get("uid") or "")


def _labels_of_namespace(name: str, view: View) -> Mapping[str, str]:
    found = view.get(NAMESPACE, Key("", name))
    return labels_of(found) if found is not None else {}
