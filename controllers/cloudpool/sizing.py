"""How a pool of Machines gets another size: marks first, then ``replicas``, by exactly as many.

Each write of ``replicas`` is refused if the object has changed since it was looked at; then all is looked at again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from api import names
from controllers.cloudpool.pool import MARK, Member, Pool
from controllers.kernel.actions import Action, Patch, Scale
from controllers.kernel.plan import Plan, steps
from controllers.kernel.victims import in_order
from controllers.kernel.wording import counted

Record = Mapping[str, str | None]
"""Annotations of the pool that say what its size is changed for; they are written with it or not at all."""


def sized(pool: Pool, replicas: int, record: Record | None = None) -> Plan:
    """Places that are not filled yet go first, then Machines that clients have given up, and the others in the order
    that MachineSets themselves keep."""
    why = f"a client of the cloudpool asks for {counted(replicas, 'Machine')}"
    going = len(pool.staying) - replicas
    if replicas >= pool.replicas or going <= 0:
        kept = [member for member in pool.staying if member.marked and not pool.surplus]
        unmarked: list[Action] = [_unmark(member) for member in kept]
        return Plan(steps(unmarked, _scaled(pool, replicas, why, record)))
    by_name = {m.facts.key.name: m for m in pool.staying if m.machine.membership.evictable}
    ordered = [by_name[f.key.name] for f in in_order((member.facts for member in by_name.values()), pool.policy)]
    victims = sorted(ordered, key=lambda member: not member.given_up)[:going]
    left = max(replicas, len(pool.staying) - len(victims))
    notes = (f"{left - replicas} more are protected by their membership status",) if left > replicas else ()
    return Plan(steps(marks(victims, why), _scaled(pool, left, why, record)), notes=notes)


def scale(pool: Pool, replicas: int, why: str) -> Scale:
    return Scale(pool.ref, max(0, replicas), why, pool.version)


def change(pool: Pool, record: Record, why: str, replicas: int | None = None) -> Patch:
    """Of annotations and, unless it is None, ``replicas``, in one write."""
    body: dict[str, Any] = {"metadata": {"annotations": dict(record)}}
    if replicas is not None:
        body["spec"] = {"replicas": max(0, replicas)}
    return Patch(pool.ref, body, why, resource_version=pool.version)


def marks(members: Iterable[Member], why: str) -> list[Action]:
    return [
        annotate(member, names.DELETE_MACHINE_ANNOTATION, MARK, why) for member in members if not member.facts.annotated
    ]


def annotate(member: Member, key: str, value: str | None, why: str = "a client of the cloudpool says so") -> Patch:
    return Patch(member.facts.ref, {"metadata": {"annotations": {key: value}}}, why)


def _unmark(member: Member) -> Action:
    return annotate(member, names.DELETE_MACHINE_ANNOTATION, None, "it stays after all")


def _scaled(pool: Pool, replicas: int, why: str, record: Record | None) -> list[Action]:
    """Nothing if it is so already."""
    if record:
        return [change(pool, record, why, replicas)]
    return [scale(pool, replicas, why)] if replicas != pool.replicas else []
