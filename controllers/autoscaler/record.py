"""What a ProvisioningRequest must not forget when the process dies, as details of its status, readable by people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count

from api.provisioning_names import (
    BOOKED_NODES_DETAIL,
    LEAVING_MACHINES_DETAIL,
    MAX_DETAIL,
    MAX_DETAILS,
    NODE_GROUPS_DETAIL,
    PROVISIONING_SINCE_DETAIL,
    RETRIES_DETAIL,
    RETRY_AFTER_DETAIL,
)
from controllers.kernel.conditions import format_time, parse_time
from controllers.kernel.refs import Key


@dataclass(frozen=True, slots=True)
class Record:
    """``nodes`` are booked. ``groups`` were asked to grow by so many Nodes at ``since``; None: nothing is on its way.
    ``leaving`` were made for the request and go again. ``retries`` so far; ``retry_after``: not before that.
    """

    nodes: tuple[str, ...] = ()
    groups: Mapping[str, int] = field(default_factory=dict)
    since: datetime | None = None
    leaving: tuple[Key, ...] = ()
    retries: int = 0
    retry_after: datetime | None = None


OWNED = (
    BOOKED_NODES_DETAIL,
    NODE_GROUPS_DETAIL,
    PROVISIONING_SINCE_DETAIL,
    LEAVING_MACHINES_DETAIL,
    RETRIES_DETAIL,
    RETRY_AFTER_DETAIL,
)


def write(record: Record) -> dict[str, str]:
    """Same record, same details; what is empty is left out."""
    found = dict(_chunks(BOOKED_NODES_DETAIL, record.nodes))
    found |= dict(_chunks(NODE_GROUPS_DETAIL, (f"{group}={nodes}" for group, nodes in sorted(record.groups.items()))))
    found |= dict(_chunks(LEAVING_MACHINES_DETAIL, map(str, record.leaving)))
    if record.since is not None:
        found[PROVISIONING_SINCE_DETAIL] = format_time(record.since)
    if record.retries:
        found[RETRIES_DETAIL] = str(record.retries)
    if record.retry_after is not None:
        found[RETRY_AFTER_DETAIL] = format_time(record.retry_after)
    return found


def read(details: object) -> Record:
    """What can't be read counts as not there."""
    found = {str(key): str(value) for key, value in details.items()} if isinstance(details, Mapping) else {}
    retries = found.get(RETRIES_DETAIL, "")
    return Record(
        nodes=tuple(_words(found, BOOKED_NODES_DETAIL)),
        groups=dict(_sizes(_words(found, NODE_GROUPS_DETAIL))),
        since=parse_time(found.get(PROVISIONING_SINCE_DETAIL)),
        leaving=tuple(Key(*word.split("/", 1)) for word in _words(found, LEAVING_MACHINES_DETAIL) if "/" in word),
        retries=int(retries) if retries.isascii() and retries.isdigit() else 0,
        retry_after=parse_time(found.get(RETRY_AFTER_DETAIL)),
    )


def is_owned(detail: str) -> bool:
    """Whether the detail is one of ours; others' stay."""
    name, dash, number = detail.rpartition("-")
    return detail in OWNED or bool(dash and name in OWNED and number.isdigit())


def fits(record: Record) -> bool:
    """Whether a status can hold it at all."""
    return len(write(record)) <= MAX_DETAILS


def _chunks(name: str, words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The words in as many details as they need."""
    numbers = count(1)
    line: list[str] = []
    key, length = name, 0
    for word in words:
        if line and length + len(word) > MAX_DETAIL:
            yield key, " ".join(line)
            key, line, length = f"{name}-{next(numbers)}", [], 0
        line.append(word)
        length += len(word) + 1
    if line:
        yield key, " ".join(line)


def _words(details: Mapping[str, str], name: str) -> Iterator[str]:
    yield from details.get(name, "").split()
    for number in count(1):
        more = details.get(f"{name}-{number}")
        if more is None:
            return
        yield from more.split()


def _sizes(words: Iterable[str]) -> Iterator[tuple[str, int]]:
    for word in words:
        group, _, nodes = word.rpartition("=")
        if group and nodes.isascii() and nodes.isdigit():
            yield group, int(nodes)
