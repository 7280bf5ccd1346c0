"""A Node that is drained, with what is around it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from controllers.drain.assess import Draining, NotDrained, assess
from controllers.drain.context import observe
from controllers.kernel.actions import Delete, Evict
from tests.builders import NOW, Builder, FakeView, machine, node

CLOSED = node("n").ready().draining_for("uid-m-1")
"""A Node that was cordoned already."""


def draining(node_: Builder, *objects: Builder, since: float = 0, **more: Any) -> Draining:
    """The drain of ``node_``, begun ``since`` seconds ago, with every pod on it."""
    body = node_.build()
    view = FakeView(*(o.on(body["metadata"]["name"]) if hasattr(o, "on") else o for o in objects))
    started = NOW - timedelta(seconds=since)
    return Draining("uid-m-1", body, NOW, observe(machine("m-1").build(), body, view), started, **more)


def next_step(drain: Draining) -> NotDrained:
    found = assess(drain)
    assert isinstance(found, NotDrained), found
    return found


def evicted(drain: Draining) -> list[str]:
    return [a.target.key.name for a in next_step(drain).actions if isinstance(a, Evict)]


def deleted(drain: Draining) -> list[tuple[str, int | None]]:
    """Names of the pods with the grace they are given."""
    actions = next_step(drain).actions
    return [(a.target.key.name, a.grace_seconds) for a in actions if isinstance(a, Delete)]
