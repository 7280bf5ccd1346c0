"""Which keys are slowed down: those that repeat their writes, and no others below a ceiling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from controllers.kernel.actions import Action, Delete, Event, Patch, Scale
from controllers.kernel.refs import MACHINE, MACHINE_SET, Key, Ref
from nodewright.runtime.writes.write_throttle import CEILING, FREE, PAUSE, WINDOW, WriteThrottle, content_of

SET = Ref(MACHINE_SET, Key("default", "pool"), "u1")


def status(**fields: Any) -> Patch:
    return Patch(SET, {"status": fields}, "a status", "status")


def machine(number: int) -> Delete:
    return Delete(Ref(MACHINE, Key("default", f"m-{number}"), f"uid-{number}"), "scaled down")


def pauses(reconciles: int, of: Callable[[int], list[Action]], seconds: float = WINDOW / 2) -> list[float]:
    """What the throttle says after each of so many rounds, evenly over the time."""
    throttle: WriteThrottle[str] = WriteThrottle()

    def content(number: int) -> Callable[[], int]:
        return lambda: content_of(of(number))

    return [throttle.wrote("key", number * seconds / reconciles, content(number)) for number in range(reconciles)]


def at(number: int) -> str:
    return f"2026-06-01T12:00:{number % 60:02}.{number:03}Z"


LOOPS: dict[str, Callable[[int], list[Action]]] = {
    "the same patch": lambda _: [status(replicas=3)],
    "back and forth": lambda number: [status(replicas=number % 2)],
    "two writers and a third value": lambda number: [status(replicas=number % 3)],
    "a new moment each time": lambda number: [status(conditions=[{"type": "Ready", "lastTransitionTime": at(number)}])],
    "a moment in a text": lambda number: [status(message=f"last tried {at(number)}")],
    "another version each time": lambda number: [Patch(SET, {"spec": {"a": 1}}, "why", "", str(number))],
    "another reason each time": lambda number: [Patch(SET, {"spec": {"a": 1}}, f"why {number}")],
    "another Event each time": lambda number: [status(a=1), Event(SET, "Normal", "Scaled", f"number {number}")],
    "keys in another order": lambda number: [status(**dict([("a", 1), ("b", 2)][:: 1 if number % 2 else -1]))],
    "actions in another order": lambda number: [machine(1), machine(2)][:: 1 if number % 2 else -1],
    "the same deletion": lambda _: [machine(1)],
    "the same scale": lambda _: [Scale(SET, 3, "why")],
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_that_repeats_its_writes_is_held_back(name: str) -> None:
    found = pauses(100, LOOPS[name])
    assert not any(found[:FREE])
    assert all(found[FREE + 3 :])


WORK: dict[str, Callable[[int], list[Action]]] = {
    "Machines that go one by one": lambda number: [machine(number), status(replicas=200 - number)],
    "statuses that follow": lambda number: [status(replicas=200 - number // 2, ready=200 - (number + 1) // 2)],
    "one more each time": lambda number: [Scale(SET, number, "why")],
}


@pytest.mark.parametrize("name", WORK)
def test_work_that_gets_on_is_not_held_back(name: str) -> None:
    assert not any(pauses(200, WORK[name]))


def test_beyond_the_ceiling_everything_waits() -> None:
    """A plan that writes a number more in each round gets nowhere either."""
    found = pauses(CEILING + 10, WORK["one more each time"])
    assert not any(found[:CEILING])
    assert found[CEILING:] == [PAUSE] * 10


def test_a_window_ends_and_a_key_is_forgotten() -> None:
    throttle: WriteThrottle[str] = WriteThrottle()
    for _ in range(FREE + 1):
        throttle.wrote("key", 0.0, lambda: 1)
    assert throttle.wrote("key", 1.0, lambda: 1) == PAUSE
    assert throttle.wrote("other", 1.0, lambda: 1) == 0
    assert throttle.wrote("key", WINDOW, lambda: 1) == 0
    throttle.forget("key")
    assert throttle.wrote("key", WINDOW, lambda: 1) == 0


def test_rounds_that_are_free_cost_no_look_at_what_they_wrote() -> None:
    def look() -> int:
        raise AssertionError("looked")

    throttle: WriteThrottle[str] = WriteThrottle()
    assert [throttle.wrote("key", 0.0, look) for _ in range(FREE)] == [0.0] * FREE
