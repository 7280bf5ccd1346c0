"""One victim from its choice to its end, and what becomes of one that nobody takes care of any more.

    mark the Node -> evict its pods -> all have gone -> note it -> the backend terminates the machine -> delete the Node

Until the backend is asked, everything can be put back. The Node goes last: were it deleted before its machine, a
machine that could not be terminated would run on, unknown to the cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from api import names
from controllers.cloudpool import record as records
from controllers.cloudpool.messages import PoolMachine
from controllers.cloudpool.record import Record
from controllers.drain.assess import Drained, Draining, assess
from controllers.drain.context import DrainContext
from controllers.drain.volumes import Detaching, waits_for
from controllers.kernel.actions import Action, Delete
from controllers.kernel.refs import NODE, Obj, annotations_of, is_deleting, ref_of


@dataclass(frozen=True, slots=True)
class Evacuating:
    """``deadline``: when it is given up."""

    record: Record
    node: Obj
    drain_context: DrainContext
    now: datetime
    deadline: datetime


@dataclass(frozen=True, slots=True)
class Act:
    """``actions`` now, then look again; ``why`` names what is waited for."""

    actions: tuple[Action, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Emptied:
    """Nothing is left that anybody waits for. ``note`` is written before the backend is asked, None: it has been."""

    note: Action | None
    why: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The Node is put back by ``actions``."""

    actions: tuple[Action, ...]
    why: str


def next_step(evacuating: Evacuating) -> Act | Emptied | GiveUp:
    node, record, now = evacuating.node, evacuating.record, evacuating.now
    name = node["metadata"]["name"]
    why = f"machine {record.machine} is taken out of its pool"
    if is_deleting(node):
        return Act((), f"Node {name} is being deleted by somebody else")
    if not records.is_marked(node, record):
        return Act((records.mark(node, record, why),), f"closing Node {name}")
    found = assess(Draining(record.token, node, now, evacuating.drain_context, record.started, why=why))
    volumes = _attached(evacuating) if isinstance(found, Drained) and not found.out_of_reach else ""
    if isinstance(found, Drained) and not volumes:
        noted = replace(record, terminating=now)
        note = None if records.is_asked(node, record) else records.ask(node, noted, "its pods have gone")
        return Emptied(note, found.skipped or f"Node {name} is empty")
    waiting = f"Node {name} waits for volumes to be detached: {volumes}" if isinstance(found, Drained) else found.why
    if now >= evacuating.deadline:
        return GiveUp(give_up(node, "it did not become empty in time"), f"it did not become empty in time: {waiting}")
    return Act(() if isinstance(found, Drained) else found.actions, waiting)


def _attached(evacuating: Evacuating) -> str:
    return waits_for(Detaching(evacuating.node, evacuating.drain_context, evacuating.now, evacuating.record.started))


def give_up(node: Obj, why: str) -> tuple[Action, ...]:
    """Open the Node again; nothing to do if it carries no record."""
    if names.CLOUDPOOL_SCALE_DOWN_ANNOTATION not in annotations_of(node):
        return ()
    return (records.put_back(node, why),)


def finish(node: Obj) -> tuple[Action, ...]:
    """After its machine has ended. The Node of a Machine is left to the Machine's own controller."""
    if any(
        mark in annotations_of(node) for mark in (names.NODE_MACHINE_ANNOTATION, names.CAPI_NODE_MACHINE_ANNOTATION)
    ):
        return ()
    return (Delete(ref_of(NODE, node), f"delete Node {node['metadata']['name']}: its machine was terminated"),)


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """Nothing yet."""

    why: str


def after_a_crash(
    node: Obj, record: Record, machines: Sequence[PoolMachine], patience: timedelta, now: datetime
) -> tuple[Action, ...] | LeftAlone:
    """What to do with a Node that carries ``record`` and that no evacuation of this process takes care of.

    ``patience``: how long a call to the backend may take that was sent just before the end.
    """
    name = node["metadata"]["name"]
    if record.terminating is None:
        return give_up(node, "whoever emptied it was interrupted")
    machine = next((each for each in machines if each.id == record.machine), None)
    if machine is None or not machine.allocated:
        return finish(node)
    if now < record.terminating + patience:
        return LeftAlone(f"Node {name}: machine {record.machine} may be being terminated by the backend")
    return give_up(node, f"the backend has not terminated machine {record.machine}")
