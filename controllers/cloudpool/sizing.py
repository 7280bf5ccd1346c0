"""How a pool of Machines gets another size: the Machines that go by name, and what the size is changed for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controllers.cloudpool.pool import MARK, Member, Pool
from controllers.kernel.actions import Action, Patch
from controllers.kernel.conditions import counted
from controllers.kernel.deletions import in_order
from controllers.kernel.plan import Plan
from controllers.scaling import resize
from controllers.scaling.resize import ByName, Resize, Scaling

Record = Mapping[str, str | None]
"""Annotations of the pool that say what its size is changed for; they are written with it or not at all."""


def sized(pool: Pool, replicas: int, record: Record | None = None) -> Plan:
    """Places that are not filled yet go first, then Machines that clients have given up, and the others in the order
    that MachineSets themselves keep."""
    why = f"a client of the cloudpool asks for {counted(replicas, 'Machine')}"
    going = len(pool.staying) - replicas
    if replicas >= pool.replicas or going <= 0:
        kept = [ByName(m.facts, "it stays after all") for m in pool.staying if m.marked and not pool.surplus]
        return Plan(Scaling(scaler=MARK, staying=kept, sizes=_sizes(pool, replicas, why, record)).steps())
    by_name = {m.facts.key.name: m for m in pool.staying if m.machine.membership.evictable}
    ordered = [by_name[f.key.name] for f in in_order((member.facts for member in by_name.values()), pool.policy)]
    victims = sorted(ordered, key=lambda member: not member.given_up)[:going]
    left = max(replicas, len(pool.staying) - len(victims))
    notes = (f"{left - replicas} more are protected by their membership status",) if left > replicas else ()
    return Plan(smaller(pool, victims, left, why, record).steps(), notes=notes)


def smaller(pool: Pool, victims: Iterable[Member], replicas: int, why: str, record: Record | None = None) -> Scaling:
    """``replicas`` Machines are left, and ``victims`` are not among them."""
    going = [ByName(member.facts, why) for member in victims]
    return Scaling(scaler=MARK, going=going, sizes=_sizes(pool, replicas, why, record))


def record_on(pool: Pool, record: Record, why: str) -> Patch:
    """Annotations of the pool; its size stays."""
    return resize.annotate_group(pool.scaled.group, record, why)


def resized(pool: Pool, replicas: int, why: str, record: Record | None = None) -> Action:
    """Another size without a Machine that goes for it."""
    return Resize(group=pool.scaled.group, replicas=replicas, why=why, record=record or {}).write()


def annotate(member: Member, key: str, value: str | None, why: str = "a client of the cloudpool says so") -> Patch:
    return Patch(member.facts.ref, {"metadata": {"annotations": {key: value}}}, why)


def _sizes(pool: Pool, replicas: int, why: str, record: Record | None) -> list[Resize]:
    """Nothing if it is so already."""
    if not record and replicas == pool.replicas:
        return []
    return [Resize(group=pool.scaled.group, replicas=replicas, why=why, record=record or {})]
