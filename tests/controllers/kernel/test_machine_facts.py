"""What a set reads off a Machine, however odd the Machine is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from controllers.kernel.machine_facts import UNREADABLE, read
from controllers.kernel.members import MAX_REASONS, roll_up
from tests.builders import NOW, machine


def test_a_ready_machine_is_available_once_it_was_ready_for_long_enough() -> None:
    facts = read(machine("m").ready(since=30).build())
    assert facts.is_available(timedelta(seconds=30), NOW)
    assert not facts.is_available(timedelta(seconds=31), NOW)
    assert facts.available_at(timedelta(seconds=31)) == NOW + timedelta(seconds=1)


def test_a_deleting_machine_is_never_available() -> None:
    assert not read(machine("m").ready().deleting().build()).is_available(timedelta(0), NOW)


def test_a_failed_machine_says_why_with_the_most_particular_reason() -> None:
    facts = read(
        machine("m")
        .failed("InsufficientResources", "cores")
        .condition("Ready", "False", "QuotaExceeded", "cores")
        .build()
    )
    assert (facts.failed, facts.reason, facts.message) == (True, "QuotaExceeded", "cores")


def test_the_same_object_is_read_once_and_another_one_anew() -> None:
    body = machine("m").ready().build()
    assert read(body) is read(body)
    assert not read(machine("m").not_ready().build()).ready


def test_a_change_is_read_once_though_several_rooms_look_at_both_its_versions() -> None:
    old, new = machine("m-1").build(), machine("m-1").ready().build()
    before, after = read(old), read(new)
    for _ in range(2):
        assert read(old) is before
        assert read(new) is after
    newest = machine("m-1").build()
    read(newest)
    assert read(old) is not before, "only what was replaced last is kept"


ODD: dict[str, dict[str, Any]] = {
    "status is text": {"status": "broken"},
    "conditions are numbers": {"status": {"conditions": 7}},
    "a condition is text": {"status": {"conditions": ["Ready"]}},
    "nodeRef is a list": {"status": {"nodeRef": ["n"]}},
    "a time is a number": {"status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": 5}]}},
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_a_machine_that_cannot_be_read_is_counted_as_not_ready(odd: dict[str, Any]) -> None:
    """It must not raise, and must not vanish from the count either: it would be made again and again."""
    facts = read({**machine("m").build(), **odd})
    assert facts.reason == UNREADABLE
    assert not facts.ready


def test_reasons_roll_up_with_their_counts_terminal_ones_first() -> None:
    machines = [
        machine("a").pending("QuotaExceeded", "cores").failed("InsufficientResources", "cores"),
        machine("b").pending("WaitingForNode"),
        machine("c").pending("WaitingForNode"),
        machine("d").ready(),
    ]
    machines[0].condition("Ready", "False", "QuotaExceeded", "cores")
    found = roll_up(read(m.build()) for m in machines)
    assert found.text == "1× QuotaExceeded: cores; 2× WaitingForNode"
    assert found.reason == "QuotaExceeded"


def test_the_rollup_is_bounded_and_does_not_depend_on_the_order() -> None:
    machines = [read(machine(f"m-{n}").pending(f"Reason{n}", "x" * 5000).build()) for n in range(20)]
    assert roll_up(machines) == roll_up(reversed(machines))
    assert len(roll_up(machines).text) < 1000
    assert roll_up(machines).text.endswith(f"{20 - MAX_REASONS}× other reasons")
