"""A fleet counted: how many Machines are alike in cluster, set, zone, version and state, kept up with each change.

10,000 Machines are some dozens of cells, so a page that shows them all need not have them all. Worked example: 3
Machines of MachineDeployment web in zones a, a and b, all Ready with kubelet v1.34.1, are two cells: 2 in a, 1 in b.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from api import names
from controllers.kernel import machine_facts
from controllers.kernel.conditions import format_time, parse_time
from controllers.kernel.ownership import controller_of
from controllers.kernel.refs import Key, Obj, key_of, labels_of, spec_of
from nodewright.reports.json_parts import text

MOST_CELLS = 5_000
"""Cells of a page; a fleet in which nearly every Machine differs is cut, and says so."""


class Cell(NamedTuple):
    """What Machines may have in common. ``owner``: ``Kind/name`` of the deployment, else of what controls them."""

    namespace: str
    cluster: str
    owner: str
    zone: str
    version: str
    state: str


class Row(NamedTuple):
    """One Machine, as a list of Machines shows it."""

    cell: Cell
    name: str
    node: str
    reason: str
    message: str
    since: str


class Cells:
    """Counts of Machines by cell. Changes are taken in one by one."""

    def __init__(self) -> None:
        self._rows: dict[Key, Row] = {}
        self._counts: Counter[Cell] = Counter()

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, machine: Obj) -> None:
        key = key_of(machine)
        self.drop(key)
        row = row_of(machine)
        self._rows[key] = row
        self._counts[row.cell] += 1

    def drop(self, key: Key) -> None:
        row = self._rows.pop(key, None)
        if row is None:
            return
        self._counts[row.cell] -= 1
        if not self._counts[row.cell]:
            del self._counts[row.cell]

    def value(self) -> dict[str, Any]:
        """``cells``: each the six texts of a Cell and its count. ``left_out``: Machines in cells that are not shown."""
        shown = self._counts.most_common(MOST_CELLS)
        return {
            "fields": list(Cell._fields),
            "cells": [[*cell, count] for cell, count in shown],
            "total": len(self._rows),
            "leftOut": len(self._rows) - sum(count for _, count in shown),
        }

    def rows(self, wanted: dict[str, str]) -> Iterator[Row]:
        """Machines whose cell has all the values ``wanted`` of fields of Cell; those in trouble first, then by name."""
        found = (row for row in self._rows.values() if _fits(row.cell, wanted))
        return iter(sorted(found, key=lambda row: (_URGENCY.get(row.cell.state, 9), row.cell.namespace, row.name)))


_URGENCY = {"failed": 0, "not Ready": 1, "going": 2, "coming up": 3, "Ready": 4}


def row_of(machine: Obj) -> Row:
    """Total over any object that has a name."""
    labels, seen = labels_of(machine), _glance(machine)
    cluster = text(machine, "spec", "clusterName") or _label(labels, names.CLUSTER_NAME_LABEL)
    version = text(machine, "status", "versions", "kubelet") or text(machine, "spec", "versions", "kubelet")
    key = key_of(machine)
    cell = Cell(key.namespace, cluster, _owner(machine, labels), seen.failure_domain, version, _state(seen))
    return Row(cell, key.name, seen.node_name, seen.reason, seen.message[:512], format_time(seen.since))


def state_of(machine: Obj) -> str:
    """One word of five for where a Machine is."""
    return _state(_glance(machine))


class _Glance(NamedTuple):
    """Of ``MachineFacts`` what a row shows: reading all of them takes three times as long, and 10,000 are a start."""

    deleting: bool
    failed: bool
    ready: bool
    node_name: str
    failure_domain: str
    reason: str
    message: str
    since: datetime


def _glance(machine: Obj) -> _Glance:
    try:
        return _glance_at(machine)
    except (AttributeError, TypeError, ValueError, KeyError, OverflowError):
        facts = machine_facts.read(machine)  # it says what can't be read
        since = facts.deleting_since or facts.changed or facts.created
        return _Glance(
            facts.deleting, facts.failed, facts.ready, facts.node_name, facts.failure_domain, facts.reason,
            facts.message, since,
        )  # fmt: skip


def _glance_at(machine: Obj) -> _Glance:
    meta, status = machine["metadata"], machine.get("status") or {}
    deleting = meta.get("deletionTimestamp")
    is_ready, changed, reason, message = machine_facts.readiness(status)
    since = (parse_time(deleting) if deleting else changed) or parse_time(meta.get("creationTimestamp"))
    return _Glance(
        bool(deleting),
        machine_facts.is_failed(status),
        is_ready,
        (status.get("nodeRef") or {}).get("name", ""),
        machine_facts.failure_domain(spec_of(machine), status),
        reason,
        message,
        since or machine_facts.DAWN,
    )


def _state(seen: _Glance) -> str:
    if seen.deleting:
        return "going"
    if seen.failed:
        return "failed"
    if seen.ready:
        return "Ready"
    return "not Ready" if seen.node_name else "coming up"


def as_values(rows: Iterable[Row]) -> list[dict[str, str]]:
    """For a page: every field that says something."""
    return [
        {name: each for name, each in {**row.cell._asdict(), **row._asdict()}.items() if isinstance(each, str) and each}
        for row in rows
    ]


def _fits(cell: Cell, wanted: dict[str, str]) -> bool:
    return all(getattr(cell, name) == value for name, value in wanted.items())


def _owner(machine: Obj, labels: Any) -> str:
    deployment = _label(labels, names.DEPLOYMENT_NAME_LABEL)
    if deployment:
        return f"MachineDeployment/{deployment}"
    controller = controller_of(machine)
    return f"{text(controller, 'kind')}/{text(controller, 'name')}" if controller is not None else ""


def _label(labels: Any, name: str) -> str:
    found = labels.get(name, "")
    return found if isinstance(found, str) else ""
