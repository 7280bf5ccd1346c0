"""metav1.Condition lists and status patches, computed as values.

A status is built whole from what was observed and then compared: only a difference is written, so a steady state
costs no writes. A condition's own last value is never an input to a decision; only its ``lastTransitionTime`` is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from controllers.kernel.refs import objects

LONGEST_MESSAGE = 4096
"""Characters of a message. API servers take 32768, and a status that they refuse is never written."""


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


def format_time(moment: datetime) -> str:
    """RFC 3339 in UTC with whole seconds, as metav1.Time is written."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: Any) -> datetime | None:
    """Read an RFC 3339 time; None for an absent or unreadable one.

    Years 1 and 9999 are unreadable too: nothing could be added to or taken from them.
    """
    if not text or not isinstance(text, str):
        return None
    try:
        parsed = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    if not 1 < parsed.year < 9999:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def find(conditions: Iterable[Mapping[str, Any]] | None, type_: str) -> Mapping[str, Any] | None:
    for condition in conditions if isinstance(conditions, list | tuple) else ():
        if isinstance(condition, Mapping) and condition.get("type") == type_:
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
