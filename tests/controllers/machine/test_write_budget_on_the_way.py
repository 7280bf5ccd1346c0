"""A Machine that comes up smoothly is reported once; what it asks for is read anew only when it may have changed."""

from __future__ import annotations

from controllers.kernel.refs import Key
from controllers.kernel.view import HostPresent, HostReads
from controllers.machine.host_spec import wish_of
from controllers.machine.room import ROOM
from providers.base.contract import Host, HostState
from tests.builders import FakeView, machine, node

ID = "simulated://c/h-1"
"""The providerID of every host here."""


def _writes(ready_for: float) -> int:
    bound = machine("m-1").created(10).provider_id(ID)
    view = FakeView(bound, node("m-1").of(bound).ready(since=ready_for))
    wish = wish_of(bound.build(), view)
    booting = Host("h-1", "uid-m-1", "m-1", ID, HostState.PENDING, wish.spec_hash)
    observed = ROOM.observe(Key("default", "m-1"), view, HostReads(HostPresent(booting)))
    assert observed is not None
    return len(list(ROOM.plan(observed).actions()))


def test_a_ready_node_is_reported_together_with_the_addresses_that_the_next_list_brings() -> None:
    assert _writes(ready_for=1) == 0


def test_but_a_list_that_lags_for_long_holds_nothing_back() -> None:
    assert _writes(ready_for=3) == 1


def test_a_wish_is_remembered_until_the_spec_changes() -> None:
    first = machine("m-1").build()
    moved = {**first, "status": {"phase": "Running"}}
    assert wish_of(moved, FakeView()) is wish_of(first, FakeView())


def test_values_that_only_python_calls_equal_are_another_wish() -> None:
    wishes = []
    for generation, spot in enumerate((1, True), 1):
        body = machine("m-1").build()
        body["metadata"]["generation"] = generation
        body["spec"]["providerConfig"]["value"]["spot"] = spot
        wishes.append(wish_of(body, FakeView()).spec_hash)
    assert wishes[0] != wishes[1]
