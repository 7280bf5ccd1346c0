"""What people asked for: MachineDrainRules and the drain label of pods.

As in CAPI: a pod's own label counts before any rule; of the rules of the Machine's namespace, taken by name, the first
one that selects the Machine and the pod counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from api import names
from api.selectors import EVERYTHING, Selector, SelectorError, from_label_selector
from controllers.kernel.refs import Obj, key_of, labels_of


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


def for_machine(machine: Obj, cluster: Obj | None, objects: Iterable[Obj]) -> Rules:
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
