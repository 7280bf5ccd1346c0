"""What happened to a Machine, as entries sorted by time. Total over any JSON: events and statuses are text of others.

The API server keeps an Event for an hour (kube-apiserver's ``--event-ttl``) and of a condition only its last
transition, so older steps show up only where a status has their time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from api.secrets import without_secrets
from controllers.kernel.conditions import parse_time, typed

MOST_CONDITIONS = 64
LONGEST_MESSAGE = 1024
"""Characters; the API server's own bound for the message of an Event."""
_LONGEST_REASON = 128
_DAWN: Final = datetime.min.replace(tzinfo=UTC)


class Source(StrEnum):
    EVENT = "event"
    CONDITION = "condition"
    OPERATION = "operation"
    """A call of the provider, as ``status.lastOperation`` tells it."""
    OBJECT = "object"
    """A time that stands in the object itself: created, marked for deletion, a stage of the deletion."""


_RANKS: Final = {Source.OBJECT: 0, Source.OPERATION: 1, Source.EVENT: 2, Source.CONDITION: 3}
"""Times have whole seconds: within one, the cause stands before what was said of it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """``at`` is None where no time can be read; ``first``: of an Event that was counted. ``object``: ``Kind/name``."""

    at: datetime | None
    source: Source
    object: str
    reason: str
    message: str = ""
    wrong: bool = False
    count: int = 1
    first: datetime | None = None


@dataclass(frozen=True, slots=True)
class History:
    """What was read of a Machine. ``machine`` and ``node`` are None where they are gone; ``owners``: nearest first.

    ``name`` is the Machine's, ``node_name`` that of its Node ("" if none is known).
    """

    name: str
    machine: Mapping[str, Any] | None
    node_name: str = ""
    node: Mapping[str, Any] | None = None
    owners: Sequence[Mapping[str, Any]] = ()
    events: Sequence[Mapping[str, Any]] = ()


def entries_of(history: History) -> list[Entry]:
    """Oldest first; what has no time stands before all others."""
    machine = f"Machine/{history.name}"
    found = set(_of_events(history))
    if history.machine is not None:
        found |= set(_of_machine(machine, history.machine))
    if history.node is not None:
        node = f"Node/{history.node_name}"
        found |= set(_of_object(node, history.node))
        found |= set(_of_conditions(node, _part(history.node, "status").get("conditions"), good_types=("Ready",)))
    return sorted(found, key=lambda one: (one.at or _DAWN, _RANKS[one.source], one.object, one.reason, one.message))


def uid_of_latest(name: str, events: Iterable[Mapping[str, Any]]) -> str:
    """The UID of the Machine of this name that was spoken of last; "" if no event names one."""
    about = [(_moment(e), _text(_involved(e), "uid")) for e in events if _subject(e) == f"Machine/{name}"]
    return max(about, key=lambda one: one[0], default=(_DAWN, ""))[1]


def _of_events(history: History) -> Iterator[Entry]:
    machine_uid = _uid(history.machine) or uid_of_latest(history.name, history.events)
    uids = {f"Machine/{history.name}": {machine_uid}}
    if history.node_name:
        # The kubelet names its Node by name in the place of the uid (kubernetes pkg/kubelet, nodeRef).
        uids[f"Node/{history.node_name}"] = {_uid(history.node), history.node_name}
    owners = {_title(owner): _uid(owner) for owner in history.owners}
    mentioned = re.compile(rf"(?<![A-Za-z0-9.-]){re.escape(history.name)}(?![A-Za-z0-9-]|\.[A-Za-z0-9])")
    for event in history.events:
        subject, uid = _subject(event), _text(_involved(event), "uid")
        own = subject in uids and (not uid or uid in uids[subject])
        owners_ = subject in owners and uid in {"", owners[subject]}
        if own or (owners_ and mentioned.search(_text(event, "message"))):
            yield _of_event(subject, event)


def _of_event(subject: str, event: Mapping[str, Any]) -> Entry:
    last = _moment(event)
    counted = event.get("count") or _part(event, "series").get("count")
    return Entry(
        at=None if last == _DAWN else last,
        source=Source.EVENT,
        object=subject,
        reason=_short(_text(event, "reason")),
        message=_one_line(_text(event, "message")),
        wrong=event.get("type") == "Warning",
        count=counted if isinstance(counted, int) and counted > 1 else 1,
        first=parse_time(event.get("firstTimestamp")),
    )


def _of_operation(title: str, operation: Mapping[str, Any]) -> Entry:
    what = f"{_text(operation, 'type')} {_text(operation, 'state')}".strip()
    return Entry(
        parse_time(operation.get("lastUpdated")),
        Source.OPERATION,
        title,
        _short(what) or "Operation",
        _one_line(_text(operation, "description")),
        operation.get("state") == "Failed",
    )


def _of_machine(title: str, machine: Mapping[str, Any]) -> Iterator[Entry]:
    yield from _of_object(title, machine)
    status = _part(machine, "status")
    yield from _of_conditions(title, status.get("conditions"))
    if operation := _part(status, "lastOperation"):
        yield _of_operation(title, operation)
    replacement = _part(status, "replacement")
    if replacement:
        at, why = parse_time(replacement.get("startedAt")), _one_line(_text(replacement, "reason"))
        yield Entry(at, Source.OBJECT, title, "HostReplacement", why)
    for name, reason in _STAGES.items():
        at = parse_time(_part(status, "deletion").get(name))
        if at is not None:
            yield Entry(at, Source.OBJECT, title, reason)


_STAGES: Final = {
    "nodeDrainStartTime": "DrainStarted",
    "waitForNodeVolumeDetachStartTime": "WaitForVolumeDetachStarted",
    "waitForPreTerminateHookStartTime": "WaitForPreTerminateHookStarted",
    "hostDeletionStartTime": "HostDeletionStarted",
    "nodeDeletionStartTime": "NodeDeletionStarted",
}
"""Fields of ``status.deletion`` (``MachineDeletion`` of api/machine.py)."""


def _of_object(title: str, obj: Mapping[str, Any]) -> Iterator[Entry]:
    metadata = _part(obj, "metadata")
    for name, reason in (("creationTimestamp", "Created"), ("deletionTimestamp", "DeletionRequested")):
        at = parse_time(metadata.get(name))
        if at is not None:
            yield Entry(at, Source.OBJECT, title, reason)


def _of_conditions(title: str, conditions: Any, good_types: Sequence[str] = ()) -> Iterator[Entry]:
    """Conditions that changed in one moment for one reason are one entry: ``InfrastructureReady, Ready=False``.

    ``good_types``: types of which False is bad; every other is bad when it is True (those of a Node). Empty: those of a
    Machine, of which one that is False with a reason says what is not so yet; it is no fault by itself.
    """
    alike: dict[tuple[Any, ...], list[str]] = {}
    for each in typed(conditions)[:MOST_CONDITIONS]:
        type_, status = _short(str(each["type"])), _short(_text(each, "status"))
        wrong = bool(good_types) and (status == "True") != (type_ in good_types)
        moment = parse_time(each.get("lastTransitionTime"))
        wording = _short(_text(each, "reason")), _one_line(_text(each, "message"))
        alike.setdefault((moment, status, *wording, wrong), []).append(type_)
    for (at, status, reason, message, wrong), types in alike.items():
        what = f"{', '.join(sorted(types))}={status}"
        yield Entry(at, Source.CONDITION, title, what, f"{reason}: {message}" if reason and message else reason, wrong)


def _moment(event: Mapping[str, Any]) -> datetime:
    candidates = (
        _part(event, "series").get("lastObservedTime"),
        *(event.get(name) for name in ("lastTimestamp", "eventTime", "firstTimestamp")),
    )
    return max((moment for text in candidates if (moment := parse_time(text))), default=_DAWN)


def _involved(event: Mapping[str, Any]) -> Mapping[str, Any]:
    return _part(event, "involvedObject")


def _subject(event: Mapping[str, Any]) -> str:
    involved = _involved(event)
    return f"{_text(involved, 'kind')}/{_text(involved, 'name')}"


def _title(obj: Mapping[str, Any]) -> str:
    return f"{_text(obj, 'kind')}/{_text(_part(obj, 'metadata'), 'name')}"


def _uid(obj: Mapping[str, Any] | None) -> str:
    return _text(_part(obj, "metadata"), "uid") if obj is not None else ""


def _part(obj: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = obj.get(name)
    return found if isinstance(found, Mapping) else {}


def _text(obj: Mapping[str, Any], name: str) -> str:
    found = obj.get(name)
    return found if isinstance(found, str) else ""


def _short(text: str) -> str:
    return " ".join(text[:_LONGEST_REASON].split())


def _one_line(text: str) -> str:
    """On one line, bounded, without what looks like a credential: anybody may write Events."""
    whole = " ".join(without_secrets(text[: 4 * LONGEST_MESSAGE]).split())
    return whole if len(whole) <= LONGEST_MESSAGE else whole[:LONGEST_MESSAGE] + "…"
