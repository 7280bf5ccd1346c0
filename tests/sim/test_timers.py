"""The simulation's timers follow the rules of the running program's queue (``tests/runtime/test_queue.py``)."""

from __future__ import annotations

from datetime import timedelta

from controllers.cluster.reconciler import RECONCILER as CLUSTERS
from controllers.kernel.refs import Key
from controllers.machine.reconciler import RECONCILER as MACHINES
from nodewright.sim.clock import START
from nodewright.sim.timers import Timers

KEY, OTHER = Key("default", "one"), Key("default", "other")
SOON, LATER = START + timedelta(seconds=1), START + timedelta(seconds=9)


def test_of_several_timers_of_a_key_the_earliest_counts_and_only_it() -> None:
    timers = Timers()
    for at in (LATER, SOON, LATER):
        timers.set(MACHINES, KEY, at)
    assert timers.next_at() == SOON
    assert list(timers.due(SOON)) == [(MACHINES, KEY)]
    assert timers.next_at() is None


def test_a_round_drops_the_timer_that_was_set_before_it() -> None:
    timers = Timers()
    timers.set(MACHINES, KEY, SOON)
    timers.drop(MACHINES, KEY)
    timers.set(MACHINES, KEY, LATER)
    assert timers.next_at() == LATER
    assert list(timers.due(SOON)) == []
    assert list(timers.due(LATER)) == [(MACHINES, KEY)]


def test_keys_and_rooms_have_their_own_and_come_out_in_order() -> None:
    timers = Timers()
    timers.set(MACHINES, KEY, LATER)
    timers.set(CLUSTERS, KEY, SOON)
    timers.set(MACHINES, OTHER, SOON)
    assert list(timers.due(LATER)) == [(CLUSTERS, KEY), (MACHINES, OTHER), (MACHINES, KEY)]
