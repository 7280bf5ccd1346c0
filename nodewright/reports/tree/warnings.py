"""The latest Warning events about objects of a tree: what went wrong lately, also where it is well again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from controllers.kernel.conditions import parse_time
from nodewright.reports.tree.branch import Branch, Mood

MOST = 5
_DAWN = datetime.min.replace(tzinfo=UTC)


def names_in(tree: Branch) -> set[str]:
    """``Kind/name`` of every object in the tree."""
    found = {tree.name} if "/" in tree.name else set()
    for child in tree.children:
        found |= names_in(child)
    return found


def messages_in(tree: Branch) -> set[str]:
    """Everything the tree says: a warning that repeats it says nothing new."""
    return {tree.message}.union(*(messages_in(child) for child in tree.children))


def latest(events: Iterable[Mapping[str, Any]], tree: Branch, namespace: str, uids: Mapping[str, str]) -> list[Branch]:
    """The newest warnings about the objects of ``tree`` (which is of ``namespace``), newest first, at most five.

    ``uids``: of objects that are there, by ``Kind/name``: Events of a deleted namesake live on for an hour.
    """
    names, messages = names_in(tree), messages_in(tree)
    about = [
        e
        for e in events
        if e.get("type") == "Warning" and _subject(e, namespace) in names and not _is_of_a_namesake(e, namespace, uids)
    ]
    lines = [_line(event) for event in sorted(about, key=_moment, reverse=True)]
    new = [line for line in lines if not any(line.message in message for message in messages)]
    return list(_by_reason(new))[:MOST]


def _by_reason(lines: Iterable[Branch]) -> Iterator[Branch]:
    """Of several objects of a kind with the same reason the newest line alone, and how many others there are."""
    groups: dict[tuple[str, str], list[Branch]] = {}
    for line in lines:
        groups.setdefault((line.name.partition("/")[0], line.reason), []).append(line)
    for group in groups.values():
        others = len({line.name for line in group}) - 1
        if others:
            yield replace(group[0], message=f"{group[0].message} (and of {others} more)")
        else:
            yield from group


def _subject(event: Mapping[str, Any], namespace: str) -> str:
    involved = event.get("involvedObject") or {}
    here = involved.get("namespace", "") in ("", namespace)
    return f"{involved.get('kind', '')}/{involved.get('name', '')}" if here else ""


def _is_of_a_namesake(event: Mapping[str, Any], namespace: str, uids: Mapping[str, str]) -> bool:
    about = (event.get("involvedObject") or {}).get("uid")
    present = uids.get(_subject(event, namespace))
    return bool(about and present) and about != present


def _moment(event: Mapping[str, Any]) -> datetime:
    series = event.get("series") or {}
    candidates = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    moments = [moment for text in candidates if isinstance(text, str) and (moment := parse_time(text))]
    return max(moments, default=_DAWN)


def _line(event: Mapping[str, Any]) -> Branch:
    involved = event.get("involvedObject") or {}
    times = int(event.get("count") or (event.get("series") or {}).get("count") or 1)
    moment = _moment(event)
    return Branch(
        name=f"{involved.get('kind', '')}/{involved.get('name', '')}",
        mood=Mood.BUSY,
        state=f"{times}×" if times > 1 else "",
        reason=str(event.get("reason", "")),
        since=None if moment == _DAWN else moment,
        message=str(event.get("message", "")),
    )
