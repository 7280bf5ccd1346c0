"""A reboot that a health check asks for: made once, seen, and said on the Machine. And drift of its host."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from controllers.kernel.actions import Event, RebootHost
from controllers.kernel.conditions import format_time
from controllers.kernel.refs import MACHINE, Key
from controllers.kernel.view import Attempt, HostPresent, HostReads
from providers.base.errors import ErrorClass, ProviderError
from tests.controllers.machine.arena import Arena
from tests.controllers.machine.test_update import UPGRADE, running


def sick(arena: Arena, key: Key, *, attempt: str = "one", number: int = 1, seconds: float = 600) -> None:
    """As a health check marks it."""
    conditions = [c for c in arena.machine(key)["status"]["conditions"] if c["type"] != "HealthCheckSucceeded"]
    said = {"type": "HealthCheckSucceeded", "status": "False", "reason": "UnhealthyNode", "message": "it is dark"}
    times = {"requestedAt": format_time(arena.now), "deadline": format_time(arena.now + timedelta(seconds=seconds))}
    reboot = {"attempt": attempt, "number": number, **times}
    said["lastTransitionTime"] = format_time(arena.now)
    arena._store(MACHINE, key, {"status": {"conditions": [*conditions, said], "reboot": reboot}}, "status")


def reboots(arena: Arena) -> list[RebootHost]:
    return [action for action in arena.done if isinstance(action, RebootHost)]


def number_of(arena: Arena) -> int:
    (host,) = arena.world.booted()
    return host.reboot.number if host.reboot is not None else 0


def test_the_host_is_rebooted_once_and_the_machine_says_so() -> None:
    arena, key = running("InPlace")
    sick(arena, key)
    arena.run(key, 10)
    assert {action.attempt for action in reboots(arena)} == {"one"}
    assert "it is dark" in reboots(arena)[0].why
    assert number_of(arena) == 1
    said = arena.condition(key, "HostRebooted")
    assert (said["status"], said["reason"]) == ("True", "Rebooted")
    assert [a.reason for a in arena.done if isinstance(a, Event)].count("Rebooted") == 1


def test_the_machine_says_that_it_is_asked_for_before_it_is() -> None:
    """Its status is written first."""
    arena, key = running("InPlace")
    sick(arena, key)
    arena.round(key, most=1)
    assert arena.condition(key, "HostRebooted")["reason"] == "Rebooting"
    assert reboots(arena) == []


@pytest.mark.parametrize("most", range(5))
def test_a_process_that_dies_after_any_action_reboots_it_once(most: int) -> None:
    arena, key = running("InPlace")
    sick(arena, key)
    for _ in range(3):
        arena.round(key, most=most)
    arena.run(key, 10)
    assert number_of(arena) == 1


def test_a_second_attempt_reboots_it_again() -> None:
    arena, key = running("InPlace")
    sick(arena, key)
    arena.run(key, 10)
    sick(arena, key, attempt="two", number=2)
    arena.run(key, 10)
    assert number_of(arena) == 2
    assert "reboot 2" in arena.condition(key, "HostRebooted")["message"]


def test_one_that_was_switched_off_comes_up() -> None:
    arena, key = running("InPlace")
    arena.world.stop_host("uid-m-1")
    sick(arena, key)
    arena.run(key, 10)
    assert number_of(arena) == 1


def test_nothing_is_rebooted_for_a_machine_that_is_well_again_or_whose_time_is_over() -> None:
    arena, key = running("InPlace")
    sick(arena, key, seconds=-1)
    arena.run(key, 5)
    assert reboots(arena) == []
    sick(arena, key, attempt="two")
    conditions = arena.machine(key)["status"]["conditions"]
    well = [{**c, "status": "True"} if c["type"] == "HealthCheckSucceeded" else c for c in conditions]
    arena._store(MACHINE, key, {"status": {"conditions": well}}, "status")
    arena.run(key, 5)
    assert reboots(arena) == []


def test_a_host_that_is_being_changed_is_left_to_that() -> None:
    arena, key = running("InPlace")
    arena.edit(key, UPGRADE)
    arena.round(key)
    sick(arena, key)
    arena.round(key)
    assert reboots(arena) == []


def test_why_it_can_not_be_rebooted_is_said_and_it_is_tried_again() -> None:
    arena, key = running("InPlace")
    sick(arena, key)
    failing = arena.world.reboot
    arena.world.reboot = refusing(ErrorClass.TIMEOUT, "host rack1 does not answer")  # type: ignore[method-assign]
    arena.run(key, 3)
    said = arena.condition(key, "HostRebooted")
    assert (said["status"], said["reason"]) == ("False", "RebootFailed")
    assert "rack1 does not answer" in said["message"]
    assert arena.machine(key)["status"]["phase"] == "Running", "a reboot that fails says nothing of the host itself"
    arena.world.reboot = failing  # type: ignore[method-assign]
    arena.run(key, 20)
    assert number_of(arena) == 1


def test_a_provider_that_can_not_is_asked_once() -> None:
    arena, key = running("InPlace")
    sick(arena, key)
    arena.world.reboot = refusing(ErrorClass.UNSUPPORTED_CHANGE, "no")  # type: ignore[method-assign]
    arena.run(key, 30)
    assert arena.condition(key, "HostRebooted")["reason"] == "RebootUnsupported"
    assert "errorReason" not in arena.machine(key)["status"], "the Machine has not failed"
    assert arena.attempts["uid-m-1"].failures == 1


def refusing(error_class: ErrorClass, text: str) -> Any:
    def reboot(_host: str, _attempt: str) -> None:
        raise ProviderError(error_class, text)

    return reboot


def test_drift_of_the_host_is_said_with_an_event_until_it_is_over() -> None:
    arena, key = running("InPlace")
    drift = "its kubelet does not run (inactive): somebody stopped it, or it failed; see its journal"
    plain = arena.reads

    def drifted(which: Key) -> HostReads:
        reads = plain(which)
        assert isinstance(reads.host, HostPresent)
        return replace(reads, host=HostPresent(replace(reads.host.host, drift=drift)))

    arena.reads = drifted  # type: ignore[method-assign]
    arena.run(key, 5)
    said = arena.condition(key, "HostDrifted")
    assert (said["status"], said["reason"], said["message"]) == ("True", "HostDrifted", drift)
    assert [a.reason for a in arena.done if isinstance(a, Event)] == ["HostDrifted"]
    arena.reads = plain  # type: ignore[method-assign]
    arena.run(key, 5)
    assert not [c for c in arena.machine(key)["status"]["conditions"] if c["type"] == "HostDrifted"]


def test_a_failed_reboot_holds_up_no_change() -> None:
    arena, key = running("InPlace")
    later = arena.now + timedelta(hours=1)
    arena.attempts["uid-m-1"] = Attempt("reboot", ErrorClass.TIMEOUT, "no answer", 3, arena.now, later)
    arena.edit(key, UPGRADE)
    arena.run(key)
    assert arena.condition(key, "UpToDate")["status"] == "True"
