"""Conditions, the sentences in them, and what the plans of sets have in common when they report.

Plans of sets write their status guarded, and report terminal errors and invalid specs alike.

metav1.Condition lists and status patches, computed as values.

A status is built whole from what was observed and then compared: only a difference is written, so a steady state
costs no writes. A condition's own last value is never an input to a decision; only its ``lastTransitionTime`` is kept.

Sentences for people: ``1 Machine``, ``2 Machines``; what is wrong with a configuration, field by field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal

from api.conditions import Reason, SetCondition
from controllers.kernel.actions import Action, Event, Patch
from controllers.kernel.plan import Failed, Plan, Step, steps
from controllers.kernel.refs import Obj, Ref, objects, resource_version_of
from controllers.kernel.view import ConfigProblem

LONGEST_MESSAGE = 4096
"""Characters of a message. API servers take 32768, and a status that they refuse is never written."""
_MOMENTS = 8192
"""Moments remembered in text and as values: many objects change in the same second, and each is read many times."""
_LONGEST_TIME = 64


def shortened(message: str) -> str:
    """As a condition takes it: providers, Nodes and API servers say as much as they want, in any characters."""
    text = message.encode("utf-8", "replace").decode()
    return text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition as decided now. ``message`` is for people, ``reason`` for programs (CamelCase).

    ``generation``: of one that is repeated as it stands, the generation that it was decided about; None: the present.
    """

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""
    generation: int | None = field(default=None, compare=False)

    @classmethod
    def as_it_stands(cls, written: Mapping[str, Any]) -> Condition:
        """``written`` once more, for a reconcile that decides nothing about it."""
        status, seen = written.get("status"), written.get("observedGeneration")
        known: Literal["True", "False", "Unknown"] = status if status in ("True", "False") else "Unknown"
        generation = seen if isinstance(seen, int) else 0
        return cls(
            str(written["type"]), known, str(written.get("reason") or ""), str(written.get("message") or ""), generation
        )


@dataclass(frozen=True, slots=True)
class Moment:
    """When a condition is written, and about which generation of its object."""

    generation: int
    now: datetime


@lru_cache(_MOMENTS)
def format_time(moment: datetime) -> str:
    """RFC 3339 in UTC with whole seconds, as metav1.Time is written."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: Any) -> datetime | None:
    """Read an RFC 3339 time; None for an absent or unreadable one.

    Years 1 and 9999 are unreadable too: nothing could be added to or taken from them.
    """
    if not text or not isinstance(text, str) or len(text) > _LONGEST_TIME:
        return None
    return _parsed(text)


@lru_cache(_MOMENTS)
def _parsed(text: str) -> datetime | None:
    try:
        parsed = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    if not 1 < parsed.year < 9999:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def find(conditions: Iterable[Mapping[str, Any]] | None, type_: str) -> Mapping[str, Any] | None:
    for condition in conditions if isinstance(conditions, list | tuple) else ():
        if (type(condition) is dict or isinstance(condition, Mapping)) and condition.get("type") == type_:
            return condition
    return None


def typed(conditions: Any) -> list[Mapping[str, Any]]:
    """The conditions that have a type; what else is in the list is nobody's."""
    return [each for each in objects(conditions) if isinstance(each.get("type"), str)]


def is_true(conditions: Iterable[Mapping[str, Any]] | None, type_: str) -> bool:
    found = find(conditions, type_)
    return found is not None and found.get("status") == "True"


def merge(
    observed: Iterable[Mapping[str, Any]] | None, decided: Iterable[Condition], generation: int, now: datetime
) -> list[dict[str, Any]]:
    """The condition list to write: ``decided`` ones in order, foreign types kept behind them untouched.

    ``lastTransitionTime`` changes only with ``status``; the reason and message may change without it (API conventions).
    """
    before = {c["type"]: c for c in typed(observed)}
    merged: list[dict[str, Any]] = []
    for condition in decided:
        old = before.pop(str(condition.type), None)
        unchanged = old is not None and old.get("status") == condition.status and old.get("lastTransitionTime")
        merged.append(
            {
                "type": str(condition.type),
                "status": condition.status,
                "reason": str(condition.reason),
                "message": shortened(condition.message),
                "lastTransitionTime": old["lastTransitionTime"] if old and unchanged else format_time(now),
                "observedGeneration": generation if condition.generation is None else condition.generation,
            }
        )
    merged.extend(dict(c) for c in before.values())
    return merged


def merge_in_place(
    observed: Iterable[Mapping[str, Any]] | None, decided: Iterable[Condition], owned: Iterable[str], moment: Moment
) -> list[dict[str, Any]]:
    """The list to write when several write to it: each type keeps its place, and others' stay as they are.

    Conditions of ``owned`` types that are not decided are removed. A condition that says the same as before is not
    touched: a new generation alone is no reason to write.
    """
    reported, before = {str(c.type): c for c in decided}, typed(observed)
    gone = {str(type_) for type_ in owned} - reported.keys()
    kept = [c for c in before if c.get("type") not in gone]
    merged = {c["type"]: c for c in merge(kept, reported.values(), moment.generation, moment.now)}
    for old in kept:
        new = merged[old["type"]]
        if all(old.get(field) == new.get(field) for field in ("status", "reason", "message")):
            merged[old["type"]] = dict(old)
    order = [c["type"] for c in kept] + list(reported)
    return [merged[type_] for type_ in dict.fromkeys(order)]


def merge_patch(observed: Mapping[str, Any], desired: Mapping[str, Any]) -> dict[str, Any]:
    """The smallest JSON merge patch (RFC 7386) that makes the *named* keys of ``observed`` equal ``desired``.

    Keys absent from ``desired`` are left alone (they belong to another writer); a value of None removes the key.
    Lists are replaced whole. Empty result: nothing to write.
    """
    patch: dict[str, Any] = {}
    for key, want in desired.items():
        have = observed.get(key)
        if isinstance(want, Mapping) and isinstance(have, Mapping):
            inner = merge_patch(have, want)
            if inner:
                patch[key] = inner
        elif want is None:
            if key in observed:
                patch[key] = None
        elif want != have:
            patch[key] = dict(want) if isinstance(want, Mapping) else want
    return patch


MOST_PROBLEMS = 5
"""Shown of a configuration; the rest is counted."""


def counted(number: int, one: str, many: str = "") -> str:
    """``number`` with the words that go with it; ``many`` is ``one`` with an s where it is not given."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def some_of(texts: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first ``most`` texts and how many there are besides: ``a, b and 3 more``, or ``a; b; and 3 more``."""
    more, last = len(texts) - most, " and" if separator == ", " else f"{separator}and"
    return separator.join(texts[:most]) + (f"{last} {more} more" if more > 0 else "")


def in_words(problems: Iterable[ConfigProblem], below: str = "") -> str:
    """The first few problems, each with its field, ``below`` before it."""
    texts = [f"{below}{one.path}: {one.message}" if one.path else one.message for one in problems]
    return some_of(texts, MOST_PROBLEMS, "; ")


def error_fields(reason: str, message: str) -> dict[str, str | None]:
    """The terminal error in the words of both families (the Cluster Autoscaler reads the second)."""
    return {
        "errorReason": str(reason) or None,
        "errorMessage": message or None,
        "failureReason": str(reason) or None,
        "failureMessage": message or None,
    }


def guarded(ref: Ref, body: Obj, status: Mapping[str, Any], why: str) -> Patch:
    """Refused when the object changed since it was observed, even if there is nothing to write."""
    return Patch(ref, {"status": status} if status else {}, why, "status", resource_version_of(body))


def status_step(ref: Ref, body: Obj, status: Mapping[str, Any]) -> tuple[Step, ...]:
    """The write that brings the status up to date; no step if it is."""
    return steps([guarded(ref, body, status, "status is out of date")]) if status else ()


def new_failure(ref: Ref, before: Mapping[str, Any], patch: Mapping[str, Any]) -> list[Action]:
    """One event when ``patch`` is the first status to say that Machines failed for good; the message counts reasons."""
    reported, old = (find(status.get("conditions"), SetCondition.MACHINES_READY) for status in (patch, before))
    if reported is None or reported["reason"] != Reason.MACHINES_FAILED:
        return []
    if old is not None and old.get("reason") == Reason.MACHINES_FAILED:
        return []
    return [Event(ref, "Warning", Reason.MACHINES_FAILED, reported["message"])]


def invalid(ref: Ref, body: Obj, status: Mapping[str, Any], problem: str) -> Plan:
    """A spec that can't be used: said once in ``status`` and as an event, nothing else is done."""
    events: list[Action] = []
    if "errorMessage" in status:
        events.append(Event(ref, "Warning", Reason.INVALID_CONFIGURATION, problem))
    return Plan((*status_step(ref, body, status), *steps(events)), Failed(Reason.INVALID_CONFIGURATION, problem))
