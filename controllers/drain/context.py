"""What a drain has to know beside the Node itself: the rules that people wrote, the pods and their budgets.

Read only while a Machine drains.

What people asked for: MachineDrainRules and the drain label of pods.

As in CAPI: a pod's own label counts before any rule; of the rules of the Machine's namespace, taken by name, the first
one that selects the Machine and the pod counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from api import names
from api.selectors import EVERYTHING, Selector, SelectorError, from_label_selector
from controllers.kernel.ownership import cluster_of
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


class Behavior(StrEnum):
    """What a drain does with a pod."""

    DRAIN = "Drain"
    SKIP = "Skip"
    WAIT_COMPLETED = "WaitCompleted"


_BY_LABEL = {"skip": Behavior.SKIP, "wait-completed": Behavior.WAIT_COMPLETED}
_LABELS = (names.OWN_POD_DRAIN_LABEL, names.POD_DRAIN_LABEL)
Pair = tuple[Selector, Selector]
"""Two selectors that must both match: of Machine and Cluster, or of pod and namespace."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One MachineDrainRule that selects the Machine. Without ``pods`` it is about every pod."""

    name: str
    behavior: Behavior
    order: int = 0
    pods: tuple[Pair, ...] = ()


@dataclass(frozen=True, slots=True)
class Treatment:
    """How one pod is to be treated. Pods of a lower ``order`` move first."""

    behavior: Behavior = Behavior.DRAIN
    order: int = 0


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one Machine, in the order in which they are asked.

    ``problem`` names a rule that can't be read: it might be the one that protects a pod, so nothing moves before it is
    repaired.
    """

    rules: tuple[Rule, ...] = ()
    problem: str = ""

    def treatment(self, pod: Obj, namespace_labels: Mapping[str, str]) -> Treatment:
        """What was asked for this pod; to be drained with order 0 if nothing was."""
        labels = labels_of(pod)
        treatments = (_BY_LABEL.get(str(labels.get(label)).lower()) for label in _LABELS)
        by_label = next((behavior for behavior in treatments if behavior is not None), None)
        if by_label is not None:
            return Treatment(by_label)
        for rule in self.rules:
            if not rule.pods or any(p.matches(labels) and n.matches(namespace_labels) for p, n in rule.pods):
                return Treatment(rule.behavior, rule.order)
        return Treatment()


NO_RULES = Rules()


def rules_for_machine(machine: Obj, cluster: Obj | None, objects: Iterable[Obj]) -> Rules:
    """The MachineDrainRules among ``objects`` (those of its namespace) that are about ``machine``."""
    found: list[Rule] = []
    for body in sorted(objects, key=lambda obj: key_of(obj).name):
        name = key_of(body).name
        try:
            rule = _read(body, labels_of(machine), labels_of(cluster) if cluster is not None else {})
        except SelectorError as fault:
            return Rules(problem=f"MachineDrainRule {name} can't be read: {fault}; repair or delete it")
        if rule is not None:
            found.append(rule)
    return Rules(tuple(found))


def _read(body: Obj, machine: Mapping[str, str], cluster: Mapping[str, str]) -> Rule | None:
    """None if it is about other Machines. Raises SelectorError with the field."""
    spec = _object(body.get("spec"), "spec")
    machines = _pairs(spec, "machines", ("selector", "clusterSelector"))
    if machines and not any(m.matches(machine) and c.matches(cluster) for m, c in machines):
        return None
    drain = _object(spec.get("drain"), "spec.drain")
    try:
        behavior = Behavior(str(drain.get("behavior")))
    except ValueError:
        what = f"{drain.get('behavior')!r} is none of {', '.join(Behavior)}"
        raise SelectorError(what, "spec.drain.behavior") from None
    order = drain.get("order") or 0
    if not isinstance(order, int):
        raise SelectorError(f"{order!r} is not a number", "spec.drain.order")
    return Rule(key_of(body).name, behavior, order, _pairs(spec, "pods", ("selector", "namespaceSelector")))


def _pairs(spec: Mapping[str, Any], name: str, fields: tuple[str, str]) -> tuple[Pair, ...]:
    items = spec.get(name) or []
    if not isinstance(items, list):
        raise SelectorError("must be a list", f"spec.{name}")
    found: list[Pair] = []
    for index, item in enumerate(items):
        path = f"spec.{name}[{index}]"
        first, second = (_selector(_object(item, path), field, path) for field in fields)
        found.append((first, second))
    return tuple(found)


def _selector(item: Mapping[str, Any], field: str, path: str) -> Selector:
    """One that is not given leaves its side open."""
    if item.get(field) is None:
        return EVERYTHING
    try:
        return from_label_selector(item[field])
    except SelectorError as fault:
        raise SelectorError(fault.message, f"{path}.{field}.{fault.field}".rstrip(".")) from None


def _object(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SelectorError("must be an object", path)
    return value


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
    return replace(drain_context(node, view), rules=rules_for_machine(machine, cluster_of(machine, view), objects))


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
