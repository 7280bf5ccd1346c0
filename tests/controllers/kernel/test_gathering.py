"""Changes of many Machines are gathered before their set is looked at again; those of few are not."""

from __future__ import annotations

from controllers.kernel.budgets import gathering


def test_a_small_set_is_looked_at_for_each_change_of_a_machine() -> None:
    assert gathering({"spec": {"replicas": 99}, "status": {"replicas": 99}}, "replicas") == 0.0


def test_the_more_machines_the_longer_changes_are_gathered_but_never_beyond_two_seconds() -> None:
    pauses = [gathering({"spec": {"replicas": replicas}}) for replicas in (100, 1000, 10_000, 100_000)]
    assert pauses == [0.05, 0.5, 2.0, 2.0]


def test_a_set_that_shrinks_still_has_its_machines() -> None:
    assert gathering({"spec": {"replicas": 0}, "status": {"replicas": 1000}}, "replicas") == 0.5


def test_an_object_that_is_gone_or_malformed_is_looked_at_at_once() -> None:
    assert gathering(None) == 0.0
    assert gathering({"spec": "?", "status": {"replicas": "many"}}, "replicas") == 0.0
