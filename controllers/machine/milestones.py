"""What a change of a Machine says of its life, for the log: one line for each step that people ask about later.

Steps are read from the object, not from the code that took them: so they are the same whichever reconciler or person
took them, and a change that tells nothing new costs no line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.conditions import MachineCondition
from controllers.kernel.conditions import find, parse_time
from controllers.kernel.deletions import HELD_UP
from controllers.kernel.machine_facts import is_failed
from controllers.kernel.ownership import controller_uid
from controllers.kernel.refs import Obj

LONGEST_WHY = 300
"""Characters of a reason; the whole of it stands in the Machine's condition."""


@dataclass(frozen=True, slots=True)
class Milestone:
    """``text`` names the step; ``why`` its reason or what it is about, "" if there is nothing to add.

    ``wrong``: somebody should look.
    """

    text: str
    why: str = ""
    wrong: bool = False


def milestones(old: Obj | None, new: Obj | None, now: datetime) -> tuple[Milestone, ...]:
    """Steps between two versions of a Machine; None: it was not there, or is not any more. Total over any JSON.

    What a set creates is logged with its reason where it is created.
    """
    if new is None:
        return (Milestone("Machine is gone", _lasted(old, "deletionTimestamp", now)),) if old is not None else ()
    if old is None:
        return () if controller_uid(new) else (Milestone("Machine was created", "by a person or another program"),)
    return tuple(_steps(old, new, now))


def _steps(old: Obj, new: Obj, now: datetime) -> Iterator[Milestone]:
    before, after = _mapping(old, "status"), _mapping(new, "status")
    host = _text(_mapping(new, "spec"), "providerID")
    if host and host != _text(_mapping(old, "spec"), "providerID"):
        yield Milestone("host exists", host)
    replacement = _mapping(after, "replacement")
    if replacement and not _mapping(before, "replacement"):
        yield Milestone("host is being replaced", _text(replacement, "reason"))
    node = _text(_mapping(after, "nodeRef"), "name")
    if node and node != _text(_mapping(before, "nodeRef"), "name"):
        yield Milestone("Node has joined", node)
    kubelet, was = (_text(_mapping(status, "versions"), "kubelet") for status in (after, before))
    if was and kubelet and was != kubelet:
        yield Milestone("kubelet was changed", f"from {was} to {kubelet}")
    if is_failed(after) and not is_failed(before):
        yield Milestone("Machine has failed", _reason(after, MachineCondition.READY), wrong=True)
    if _time(old, "deletionTimestamp") is None and _time(new, "deletionTimestamp") is not None:
        yield Milestone("deletion was asked for")
    elif _time(new, "deletionTimestamp") is not None:
        yield from _deletion(before, after)
    else:
        yield from _readiness(before, after, _lasted(new, "creationTimestamp", now))


def _readiness(before: Mapping[str, Any], after: Mapping[str, Any], age: str) -> Iterator[Milestone]:
    was, is_now = (_status(each, MachineCondition.READY) for each in (before, after))
    if is_now == "True" and was != "True":
        yield Milestone("Machine is Ready", age)
    elif was == "True" and is_now != "True":
        yield Milestone("Machine is no longer Ready", _reason(after, MachineCondition.READY), wrong=True)


def _deletion(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Milestone]:
    if _status(after, MachineCondition.DRAINED) == "True" and _status(before, MachineCondition.DRAINED) != "True":
        yield Milestone("Node is drained", _reason(after, MachineCondition.DRAINED))
    deleting, was = (find(each.get("conditions"), MachineCondition.DELETING) or {} for each in (after, before))
    if deleting.get("reason") in HELD_UP and deleting.get("reason") != was.get("reason"):
        yield Milestone("deletion is held up", _reason(after, MachineCondition.DELETING), wrong=True)


def _reason(status: Mapping[str, Any], type_: str) -> str:
    found = find(status.get("conditions"), type_) or {}
    return ": ".join(str(part) for part in (found.get("reason"), found.get("message")) if part)[:LONGEST_WHY]


def _status(status: Mapping[str, Any], type_: str) -> str:
    return str((find(status.get("conditions"), type_) or {}).get("status") or "")


def _lasted(machine: Obj | None, since: str, now: datetime) -> str:
    """``after 7 s``, counted from a time in ``metadata``."""
    began = _time(machine, since) if machine is not None else None
    return f"after {max(int((now - began).total_seconds()), 0)} s" if began is not None else ""


def _time(machine: Obj, name: str) -> datetime | None:
    return parse_time(_mapping(machine, "metadata").get(name))


def _mapping(obj: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = obj.get(name)
    return found if isinstance(found, Mapping) else {}


def _text(obj: Mapping[str, Any], name: str) -> str:
    found = obj.get(name)
    return found[:LONGEST_WHY] if isinstance(found, str) else ""
