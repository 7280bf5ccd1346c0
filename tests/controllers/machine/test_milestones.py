"""The steps of a Machine's life, as the log tells them."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from controllers.machine.milestones import Milestone, milestones
from tests.builders import NOW, hostile, machine, machine_set
from tests.builders.machines import MachineBuilder


def m() -> MachineBuilder:
    return machine("m").of(machine_set("pool"))


def texts(old: MachineBuilder | None, new: MachineBuilder | None) -> list[str]:
    found = milestones(old.build() if old else None, new.build() if new else None, NOW)
    return [f"{one.text}: {one.why}" if one.why else one.text for one in found]


def test_a_machine_of_nobody_is_told_and_one_of_a_set_where_it_is_created() -> None:
    assert texts(None, machine("m")) == ["Machine was created: by a person or another program"]
    assert texts(None, m()) == []


def test_its_host_its_node_and_readiness_are_told_with_what_they_are_about() -> None:
    assert texts(m(), m().provider_id("simulated:///1")) == ["host exists: simulated:///1"]
    told = texts(m().pending(), m().ready())
    assert any(one.startswith("Node has joined: ") for one in told)
    assert told[-1].startswith("Machine is Ready: after ")


def test_a_machine_that_is_no_longer_ready_says_why() -> None:
    found = milestones(m().ready().build(), m().ready().not_ready("NodeNotReady", "kubelet stopped").build(), NOW)
    assert found == (Milestone("Machine is no longer Ready", "NodeNotReady: kubelet stopped", wrong=True),)


def test_a_failure_is_told_once() -> None:
    assert texts(m(), m().failed())[0].startswith("Machine has failed")
    assert texts(m().failed(), m().failed()) == []


def test_a_deletion_is_told_from_its_beginning_to_its_end() -> None:
    going = m().ready().deleting(30)
    assert texts(m().ready(), going) == ["deletion was asked for"]
    held = m().ready().deleting(30).condition("Deleting", "True", "DrainBlocked", "PodDisruptionBudget a/b")
    assert texts(going, held) == ["deletion is held up: DrainBlocked: PodDisruptionBudget a/b"]
    assert texts(held, held) == []
    drained = m().ready().deleting(30).condition("Drained", "True", "Drained")
    assert texts(going, drained) == ["Node is drained: Drained"]
    assert texts(going, None) == ["Machine is gone: after 30 s"]


def test_what_changes_nothing_costs_no_line() -> None:
    assert texts(m().ready(), m().ready()) == []


@given(hostile.json, hostile.json)
def test_any_status_can_be_read(before: Any, after: Any) -> None:
    old, new = m().build(), m().build()
    old["status"], new["status"] = before, after
    assert isinstance(milestones(old, new, NOW), tuple)
