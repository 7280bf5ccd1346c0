"""What the page may ask for: each answer is worked out from what the viewer may see, and bounded."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from controllers.kernel.ownership import controller_of
from controllers.kernel.refs import (
    CLUSTER,
    CONTROL_PLANE,
    EVENT,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_HEALTH_CHECK,
    MACHINE_SET,
    Key,
)
from nodewright.gateways.web.source import Source, now
from nodewright.reports.accounts import Gauges
from nodewright.reports.accounts import accounts as accounts_of
from nodewright.reports.deletions import board
from nodewright.reports.fleet.cells import Cell, as_values
from nodewright.reports.life import life as stages
from nodewright.reports.rollouts import rollouts as lanes
from nodewright.reports.sizes import sizes as sizes_of
from nodewright.reports.timeline.entries import History, entries_of
from nodewright.reports.timeline.showing import as_value as entry_value
from nodewright.reports.tree.builder import DisplayOptions, grow
from nodewright.reports.tree.serving import not_known, served_in
from nodewright.reports.tree.values import branch_value
from nodewright.runtime.telemetry import metrics

MOST_EVENTS = 500
PAGE_OF_GROUPS = 500
PAGE = 100
"""Machines of one answer."""
_TREES = {kind.name: kind for kind in (CLUSTER, CONTROL_PLANE, MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE,
                                       MACHINE_HEALTH_CHECK)}  # fmt: skip


class AskError(Exception):
    """What was asked for can't be answered; ``status`` is that of HTTP."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


async def machines(source: Source, query: Mapping[str, str]) -> Any:
    """``offset`` and any field of Cell: the Machines whose cell has those values, a page at a time."""
    wanted = {name: query[name] for name in Cell._fields if name in query}
    offset = _number(query.get("offset", "0"))
    search = query.get("search", "")
    found = source.cells.rows(wanted)
    if search:
        found = (row for row in found if search in row.name or search in row.node or search in row.reason)
    rows = list(islice(found, offset, offset + PAGE + 1))
    return {"offset": offset, "machines": as_values(rows[:PAGE]), "more": len(rows) > PAGE}


async def describe(source: Source, query: Mapping[str, str]) -> Any:
    """``kind``, ``namespace``, ``name``: what ``nodewright describe -o json`` says."""
    kind = _TREES.get(query.get("kind", ""))
    if kind is None:
        raise AskError("there are no trees of this kind")
    view = source.view()
    obj = view.get(kind, Key(query.get("namespace", ""), query.get("name", "")))
    if obj is None:
        raise AskError("it does not exist, or you may not see it", 404)
    tree = grow(kind, obj, view, DisplayOptions())
    leases = await source.leases()
    serving = not_known("not shown to you") if leases is None else served_in(leases, view.now, kind, obj)
    return {"object": branch_value(tree), "servedBy": branch_value(serving)}


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 7):
        raise AskError(f"{text[:20]!r} is not a number")
    return int(text)


async def life(source: Source, query: Mapping[str, str]) -> Any:
    """``namespace``, ``name``: a Machine's stages as bars, and all that events and conditions say of it."""
    key = Key(query.get("namespace", ""), query.get("name", ""))
    machine = source.view().get(MACHINE, key)
    events = await source.client.events_about(key.namespace, key.name, MOST_EVENTS)
    if machine is None and not events:
        raise AskError("it does not exist, or you may not see it", 404)
    entries = entries_of(History(key.name, machine, events=events))[-MOST_EVENTS:]
    bars = stages(machine) if machine is not None else []
    return {"stages": bars, "entries": [entry_value(each) for each in entries], "gone": machine is None}


async def rollouts(source: Source, query: Mapping[str, str]) -> Any:
    """All MachineDeployments as lanes."""
    return lanes(source.objects(MACHINE_DEPLOYMENT), source.view())


async def deletions(source: Source, query: Mapping[str, str]) -> Any:
    """All Machines that are going, by what holds them."""
    return board(source.objects(MACHINE), now())


async def sizes(source: Source, query: Mapping[str, str]) -> Any:
    """Read anew: managers of fields are not kept."""
    groups = []
    for kind in (MACHINE_DEPLOYMENT, MACHINE_SET):
        page = await source.client.list_page(kind, PAGE_OF_GROUPS, namespace=source.namespace)
        groups += [(kind, obj) for obj in page.items if kind == MACHINE_DEPLOYMENT or controller_of(obj) is None]
    events = (await source.client.list_page(EVENT, MOST_EVENTS, namespace=source.namespace)).items
    return sizes_of(groups, events)


async def accounts(source: Source, query: Mapping[str, str]) -> Any:
    """By account; breakers and orphans where this process runs the controllers."""
    return accounts_of(source.objects(MACHINE), _gauges())


def _gauges() -> Gauges:
    orphans = {labels["scope"]: int(value) for labels, value in _samples(metrics.ORPHANS)}
    breakers = {labels["scope"]: value for labels, value in _samples(metrics.HOST_BREAKER)}
    return Gauges(bool(orphans or breakers), orphans, frozenset(scope for scope, value in breakers.items() if value))


def _samples(metric: Any) -> list[tuple[dict[str, str], float]]:
    return [(sample.labels, sample.value) for family in metric.collect() for sample in family.samples]


ANSWERS = {
    "machines": machines,
    "describe": describe,
    "life": life,
    "rollouts": rollouts,
    "deletions": deletions,
    "sizes": sizes,
    "accounts": accounts,
}
