"""CapacityQuotas: what Nodes with some labels may have together, and how much of it they have.

As the Cluster Autoscaler reads them (proposal granular-resource-limits.md): what is used is the sum of
``status.capacity`` of the Nodes that match; a Node is not added if any quota that matches its labels would be exceeded;
a quota that can't be read limits nothing, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from api import capacity_names
from api.selectors import NOTHING, Selector, SelectorError, from_label_selector
from controllers.kernel.refs import CAPACITY_QUOTA, Obj, Ref, is_deleting, labels_of, mapping, ref_of, spec_of
from controllers.scheduling.demand import ShapeError, at_most, quantities, whole
from controllers.scheduling.shapes import Amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """``limits`` and ``used`` by resource, cpu in thousandths of a core. ``problem``: why it limits nothing, with the
    name of the field.
    """

    ref: Ref
    body: Obj
    selector: Selector = NOTHING
    limits: Mapping[str, int] = field(default_factory=dict)
    used: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""

    @property
    def name(self) -> str:
        return self.ref.key.name

    def share(self, labels: Mapping[str, str], capacity: Amounts) -> dict[str, int]:
        """What a Node takes of it, by resource; nothing of a quota that does not match the labels."""
        if not self.selector.matches(labels):
            return {}
        has = {**dict(capacity), capacity_names.QUOTA_NODES: 1}
        return {resource: has[resource] for resource in self.limits if has.get(resource)}


def read_quotas(bodies: Iterable[Obj], nodes: Iterable[Obj]) -> tuple[Quota, ...]:
    """By name. ``nodes``: all that are there, Ready or not."""
    alive = sorted((body for body in bodies if not is_deleting(body)), key=lambda body: str(body["metadata"]["name"]))
    if not alive:
        return ()
    there = [(labels_of(node), capacity_of(node)) for node in nodes]
    return tuple(_read(body, there) for body in alive)


def capacity_of(node: Obj) -> Amounts:
    """``status.capacity``; nothing where it can't be read."""
    try:
        return whole(quantities(mapping(node.get("status")).get("capacity"), "status.capacity"))
    except ShapeError:
        return ()


def _read(body: Obj, nodes: Iterable[tuple[Mapping[str, str], Amounts]]) -> Quota:
    ref, spec = ref_of(CAPACITY_QUOTA, body), spec_of(body)
    try:
        limits = _limits(spec)
        selector = from_label_selector(mapping(spec.get("selector")))
    except ShapeError as error:
        return Quota(ref=ref, body=body, problem=str(error))
    except SelectorError as error:
        return Quota(ref=ref, body=body, problem=f"spec.selector: {error}")
    quota = Quota(ref=ref, body=body, selector=selector, limits=limits)
    used = dict.fromkeys(limits, 0)
    for labels, capacity in nodes:
        for resource, amount in quota.share(labels, capacity).items():
            used[resource] += amount
    return Quota(ref=ref, body=body, selector=selector, limits=limits, used=used)


def _limits(spec: Obj) -> dict[str, int]:
    path = "spec.limits.resources"
    exact = quantities(mapping(spec.get("limits")).get("resources"), path)
    if len(exact) > capacity_names.MAX_QUOTA_RESOURCES:
        raise ShapeError(path, f"at most {capacity_names.MAX_QUOTA_RESOURCES} resources are limited by one quota")
    wrong = next((name for name, amount in exact.items() if amount < 0 or amount != amount.to_integral_value()), None)
    if wrong is not None:
        raise ShapeError(f"{path}[{wrong}]", "must be a whole number that is not negative")
    return at_most(exact)


class QuotaHeadroom:
    """What the quotas still allow; ``take`` lowers it."""

    def __init__(self, quotas: Iterable[Quota]) -> None:
        self._left = [
            (quota, {name: limit - quota.used[name] for name, limit in quota.limits.items()})
            for quota in quotas
            if not quota.problem
        ]

    def copy(self) -> QuotaHeadroom:
        found = QuotaHeadroom(())
        found._left = [(quota, dict(left)) for quota, left in self._left]
        return found

    def nodes(self, labels: Mapping[str, str], capacity: Amounts) -> list[tuple[int, str]]:
        """How many such Nodes each limit allows, below zero where it is exceeded already, and which limit it is.

        Worked example: of 32 cores Nodes have 20; of Nodes with 8 cores (32 - 20) // 8 = 1 is allowed.
        """
        found = []
        for quota, left in self._left:
            for resource, amount in quota.share(labels, capacity).items():
                why = f"CapacityQuota {quota.name} limits {resource} to {spelled(resource, quota.limits[resource])}"
                found.append((left[resource] // amount, why))
        return found

    def take(self, labels: Mapping[str, str], capacity: Amounts, *, count: int) -> None:
        for quota, left in self._left:
            for resource, amount in quota.share(labels, capacity).items():
                left[resource] -= count * amount


def spelled(resource: str, amount: int) -> str:
    """As a quantity: 12000 thousandths of a core are ``12``, 500 are ``500m``."""
    if resource != "cpu":
        return str(amount)
    return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
