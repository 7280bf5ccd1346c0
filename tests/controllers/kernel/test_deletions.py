"""Deletions that stand still are told on every owner, with cause, age and what they wait for."""

from __future__ import annotations

from datetime import timedelta

from controllers.kernel.deletions import SLOW_AFTER, roll_up_deletions
from controllers.kernel.machine_facts import MachineFacts, read
from tests.builders import NOW, machine

BLOCKED = "default/web (PodDisruptionBudget default/keep)"


def going(
    name: str, since: float, reason: str = "DeletingHost", message: str = "host is being deleted"
) -> MachineFacts:
    return read(machine(name).deleting(since).condition("Ready", "False", reason, message).build())


def test_without_machines_there_is_nothing_to_say() -> None:
    assert roll_up_deletions((), NOW).text == ""


def test_causes_are_counted_and_the_oldest_speaks_for_its_kind() -> None:
    machines = [
        going("a", 30, "DrainBlocked", "later"),
        going("b", 120, "DrainBlocked", BLOCKED),
        going("c", 10, "WaitingForHook", "the annotation x"),
        going("d", 10),
    ]
    found = roll_up_deletions(machines, NOW)
    assert (found.count, found.reason) == (4, "DrainBlocked")
    assert found.text.startswith("4 Machines are being deleted: 2× DrainBlocked, the first (b) since 2")
    assert BLOCKED in found.text
    assert "1× WaitingForHook, c since" in found.text
    assert "DeletingHost" not in found.text


def test_whatever_takes_too_long_is_held_up_and_the_moment_is_known_before() -> None:
    limit = SLOW_AFTER.total_seconds()
    young = roll_up_deletions([going("a", limit - 60)], NOW)
    assert (young.reason, young.next_slow) == ("", NOW + timedelta(seconds=60))
    old = roll_up_deletions([going("a", limit)], NOW)
    assert (old.reason, old.next_slow) == ("DeletingHost", None)


def test_the_text_does_not_count_seconds() -> None:
    machines = [going("a", 300, "DrainBlocked", BLOCKED)]
    assert roll_up_deletions(machines, NOW).text == roll_up_deletions(machines, NOW + timedelta(seconds=90)).text


def test_a_thousand_causes_stay_a_short_sentence() -> None:
    machines = [going(f"m-{n}", n, "QuotaExceeded" if n % 2 else f"Odd{n}", "x" * 5000) for n in range(1000)]
    found = roll_up_deletions(machines, NOW + SLOW_AFTER)
    assert len(found.text) < 2500
    assert "other causes" in found.text
