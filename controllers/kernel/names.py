"""Names and identities of what controllers create.

Names are derived, so that a repeated create collides instead of making a duplicate.

The MachineSet's journal of identities: which ordinals were given out, which Machines are on their way in or out.

It lives in ``status.ordinals`` of the MachineSet as ``{next: 13, reserved: "8-10,12", leaving: ["m-a", ...]}`` and is
written *before* Machines are created or deleted, guarded by the MachineSet's resourceVersion. So two controllers, or
one with a stale view, can't give the same number twice, create above the replicas or choose other victims instead of
those already chosen (MC#390, MCM#1091, CAPI#13649).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from api import limits
from controllers.kernel.memory import digest


def machine_prefix(set_name: str, set_uid: str) -> str:
    """``<machineset>-<digest of its uid>-``; a namesake made after the MachineSet was deleted gets other names.

    A MachineSet name that is too long for a Node name (MAX_MACHINESET_NAME) is cut: the uid tells them apart.
    """
    stem = set_name[: limits.MAX_MACHINESET_NAME].rstrip("-.")
    return f"{stem}-{digest(set_uid, limits.OWNER_DIGEST_LENGTH)}-"


def machine_name(prefix: str, ordinal: int) -> str:
    return f"{prefix}{ordinal}"


def ordinal_of(name: str, prefix: str) -> int | None:
    """The ordinal in a Machine's name; None for a name that this MachineSet did not make (an adopted Machine)."""
    tail = name[len(prefix) :]
    if not name.startswith(prefix) or not tail.isascii() or not tail.isdigit():
        return None
    return int(tail) if tail == "0" or tail[0] != "0" else None


def machine_set_name(deployment_name: str, template_hash: str) -> str:
    """``<machinedeployment>-<template hash>``, cut to what leaves room for Machine names."""
    free = limits.MAX_MACHINESET_NAME - len(template_hash) - 1
    return f"{deployment_name[:free].rstrip('-.')}-{template_hash}"


def label_value(name: str) -> str | None:
    """``name`` if it can stand as a label value, else None: then the label is left out."""
    return name if len(name) <= limits.MAX_LABEL_VALUE else None


MAX_RESERVED = 100_000
"""More reservations than this are a damaged journal, not a big MachineSet."""


class OrdinalsError(ValueError):
    """A journal that can't be read; the message names the field below ``status.ordinals``."""


@dataclass(frozen=True, slots=True)
class Ordinals:
    """``next`` is above every ordinal ever given out; ``reserved`` those whose Machine was not seen yet.

    ``leaving``: names of Machines whose deletion was decided and not seen yet.
    """

    next: int = 0
    reserved: frozenset[int] = frozenset()
    leaving: frozenset[str] = frozenset()

    def reserve(self, count: int) -> Ordinals:
        """Give out ``count`` more."""
        fresh = range(self.next, self.next + count)
        return Ordinals(self.next + count, self.reserved.union(fresh), self.leaving)

    def without(self, ordinals: Iterable[int]) -> Ordinals:
        """These were seen, or are given up."""
        return Ordinals(self.next, self.reserved.difference(ordinals), self.leaving)

    def select_for_deletion(self, names: Iterable[str]) -> Ordinals:
        """Replace the names of those that leave."""
        return Ordinals(self.next, self.reserved, frozenset(names))

    def above(self, ordinals: Iterable[int]) -> Ordinals:
        """Never give out a number that is seen in use (a journal lost with the status, after a restore)."""
        lowest = max(ordinals, default=-1) + 1
        return self if lowest <= self.next else Ordinals(lowest, self.reserved, self.leaving)

    def to_status(self) -> dict[str, Any]:
        """None means: without this field."""
        return {"next": self.next, "reserved": ranges(self.reserved) or None, "leaving": sorted(self.leaving) or None}


def read_ordinals(status: Mapping[str, Any]) -> Ordinals:
    """The journal in a MachineSet's ``status``; empty if there is none. Raises OrdinalsError."""
    found = status.get("ordinals")
    if not found:
        return Ordinals()
    if not isinstance(found, Mapping):
        raise OrdinalsError("must be an object")
    following = found.get("next", 0)
    if isinstance(following, bool) or not isinstance(following, int) or following < 0:
        raise OrdinalsError("next: must be a non-negative integer")
    leaving = found.get("leaving") or []
    if not isinstance(leaving, list) or not all(isinstance(name, str) for name in leaving):
        raise OrdinalsError("leaving: must be a list of names")
    reserved = parse_ranges(found.get("reserved") or "")
    return Ordinals(max(following, max(reserved, default=-1) + 1), reserved, frozenset(leaving))


def ranges(numbers: Iterable[int]) -> str:
    """``{8, 9, 10, 12}`` → ``"8-10,12"``."""
    parts: list[str] = []
    first = last = -2
    for number in sorted(numbers):
        if number == last + 1:
            last = number
            continue
        if first >= 0:
            parts.append(_range(first, last))
        first = last = number
    if first >= 0:
        parts.append(_range(first, last))
    return ",".join(parts)


def parse_ranges(text: str) -> frozenset[int]:
    """Inverse of ``ranges``. Raises OrdinalsError for anything that is not a list of at most MAX_RESERVED numbers."""
    if not isinstance(text, str):
        raise OrdinalsError("reserved: must be text like 8-10,12")
    numbers: set[int] = set()
    for part in text.split(",") if text else ():
        first_text, dash, last_text = part.partition("-")
        ends = (first_text, last_text if dash else first_text)
        if not all(end.isascii() and end.isdigit() and len(end) <= 9 for end in ends):
            raise OrdinalsError(f"reserved: {part[:20]!r} is no number or range like 8-10")
        first, last = int(ends[0]), int(ends[1])
        if last < first or len(numbers) + last - first >= MAX_RESERVED:
            raise OrdinalsError(f"reserved: {part[:20]!r} is backwards, or the list is too long")
        numbers.update(range(first, last + 1))
    return frozenset(numbers)


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
