"""A cluster's life: pods come and go, the autoscaler dies between any two writes and forgets what it did not keep."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from controllers.autoscaler.options import AutoscalerOptions, ShrinkOptions
from tests.controllers.autoscaler.fleet import Fleet
from tests.examples import usually

MOST, LEAST = 4, 1
LATER = timedelta(minutes=4)

come = st.tuples(st.just("come"), st.integers(1, 4), st.sampled_from(["0.5", "1", "3"]))
leave = st.tuples(st.just("leave"), st.integers(1, 4), st.just(""))
dies = st.tuples(st.just("dies"), st.integers(0, 2), st.just(""))
forgets = st.tuples(st.just("forgets"), st.just(0), st.just(""))


@usually(6)
@given(st.lists(st.one_of(come, leave, dies, forgets), max_size=8), st.booleans())
def test_whatever_happens_pods_run_and_what_is_not_needed_goes(
    story: list[tuple[str, int, str]], hosts_are_slow: bool
) -> None:
    fleet = Fleet(AutoscalerOptions(shrink=ShrinkOptions(parallel_drains=2)))
    fleet.group("web", LEAST, MOST)["spec"]["replicas"] = LEAST
    fleet.settle()
    for what, count, cpu in story:
        running = {name for name, pod in fleet.pods.items() if pod["spec"].get("nodeName")}
        if what == "come":
            fleet.come(count, cpu)
        elif what == "leave":
            fleet.leave(count)
        elif what == "forgets":
            fleet.text = ""
        fleet.round(steps=count if what == "dies" else 9, after=LATER)
        assert LEAST <= fleet.size("web") <= MOST
        if not hosts_are_slow:
            fleet.settle()
            pending = {name for name, pod in fleet.pods.items() if not pod["spec"].get("nodeName")}
            assert not pending & running, "a pod that ran lost its place"
    _comes_to_rest(fleet)


def _comes_to_rest(fleet: Fleet) -> None:
    """With time, and no more disturbance: nothing is left to write, and no pod waits that a Node could take."""
    for _ in range(30):
        fleet.settle()
        fleet.round(after=LATER)
    fleet.settle()
    assert not fleet.round().steps, "the steady state writes nothing"
    pending = [name for name, pod in fleet.pods.items() if not pod["spec"].get("nodeName")]
    assert not pending or fleet.size("web") == MOST
    if not fleet.pods:
        assert fleet.size("web") == LEAST
