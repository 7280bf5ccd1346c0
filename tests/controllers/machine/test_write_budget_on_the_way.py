"""A Machine that comes up smoothly is reported once; what it asks for is read anew only when it may have changed."""

from __future__ import annotations

from controllers.kernel.refs import Key
from controllers.kernel.view import HostPresent, HostReads
from controllers.machine.host_spec import desired_host
from controllers.machine.reconciler import RECONCILER
from providers.base.contract import Host, HostState
from tests.builders import FakeView, machine, node

ID = "simulated://c/h-1"
"""The providerID of every host here."""


def _writes(ready_for: float) -> int:
    bound = machine("m-1").created(10).provider_id(ID)
    view = FakeView(bound, node("m-1").of(bound).ready(since=ready_for))
    desired = desired_host(bound.build(), view)
    booting = Host("h-1", "uid-m-1", "m-1", ID, HostState.PENDING, desired.spec_hash)
    observed = RECONCILER.observe(Key("default", "m-1"), view, HostReads(HostPresent(booting)))
    assert observed is not None
    return len(list(RECONCILER.plan(observed).actions()))


def test_a_ready_node_is_reported_together_with_the_addresses_that_the_next_list_brings() -> None:
    assert _writes(ready_for=1) == 0


def test_but_a_list_that_lags_for_long_holds_nothing_back() -> None:
    assert _writes(ready_for=3) == 1


def test_a_wish_is_remembered_until_the_spec_changes() -> None:
    first = machine("m-1").build()
    moved = {**first, "status": {"phase": "Running"}}
    assert desired_host(moved, FakeView()) is desired_host(first, FakeView())


def test_values_that_only_python_calls_equal_are_another_wish() -> None:
    desired_hosts = []
    for generation, spot in enumerate((1, True), 1):
        body = machine("m-1").build()
        body["metadata"]["generation"] = generation
        body["spec"]["providerConfig"]["value"]["spot"] = spot
        desired_hosts.append(desired_host(body, FakeView()).spec_hash)
    assert desired_hosts[0] != desired_hosts[1]
