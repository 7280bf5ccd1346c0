"""What rooms give for the metrics: shown as it is now, or added up."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from controllers.kernel.plan import Figure, Metric
from nodewright.runtime.figures import Metrics

NODES = Metric("a_nodes", "Nodes.", ("state",))
ADDED = Metric("a_added_total", "Nodes added.", (), total=True)


def shown(figures: Metrics) -> list[str]:
    registry = CollectorRegistry()
    registry.register(figures)
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


def test_nothing_is_shown_of_a_room_that_does_not_run() -> None:
    assert shown(Metrics()) == []


def test_the_last_plan_counts_and_what_it_does_not_say_is_gone() -> None:
    figures = Metrics()
    figures.report("a", [Figure(NODES, 2, ("ready",)), Figure(NODES, 1, ("unready",))], True)
    figures.report("a", [Figure(NODES, 3, ("ready",))], False)
    assert shown(figures) == ['a_nodes{state="ready"} 3.0']
    figures.report("b", [], True)
    assert shown(figures) == ['a_nodes{state="ready"} 3.0'], "another room says nothing of this one's"


def test_totals_add_up_over_plans_that_were_carried_out() -> None:
    figures = Metrics()
    for succeeded in (True, False, True):
        figures.report("a", [Figure(ADDED, 2)], succeeded)
    figures.report("a", [], True)
    assert shown(figures) == ["a_added_total 4.0"]
