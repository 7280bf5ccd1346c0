"""What rooms give for the metrics: shown as it is now, or added up."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from controllers.kernel.plan import Metric, Sample
from nodewright.runtime.telemetry.plan_metrics import Metrics, Source

NODES = Metric("a_nodes", "Nodes.", ("state",))
ADDED = Metric("a_added_total", "Nodes added.", (), total=True)


def shown(metrics: Metrics) -> list[str]:
    registry = CollectorRegistry()
    registry.register(metrics)
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


def test_nothing_is_shown_of_a_room_that_does_not_run() -> None:
    assert shown(Metrics()) == []


def test_the_last_plan_counts_and_what_it_does_not_say_is_gone() -> None:
    metrics = Metrics()
    metrics.report(Source("a"), [Sample(NODES, 2, ("ready",)), Sample(NODES, 1, ("unready",))], True)
    metrics.report(Source("a"), [Sample(NODES, 3, ("ready",))], False)
    assert shown(metrics) == ['a_nodes{cluster="",state="ready"} 3.0']
    metrics.report(Source("b"), [], True)
    assert shown(metrics) == ['a_nodes{cluster="",state="ready"} 3.0'], "another room says nothing of this one's"


def test_totals_add_up_over_plans_that_were_carried_out() -> None:
    metrics = Metrics()
    for succeeded in (True, False, True):
        metrics.report(Source("a"), [Sample(ADDED, 2)], succeeded)
    metrics.report(Source("a"), [], True)
    assert shown(metrics) == ['a_added_total{cluster=""} 4.0']


def test_each_cluster_has_series_of_its_own_which_go_with_it() -> None:
    metrics = Metrics()
    for cluster, nodes in (("", 1), ("ns/a", 2), ("ns/b", 3)):
        metrics.report(Source("a", cluster), [Sample(NODES, nodes, ("ready",)), Sample(ADDED, nodes)], True)
    metrics.report(Source("a", "ns/a"), [Sample(NODES, 4, ("ready",))], True)
    metrics.forget(Source("a", "ns/b"))
    metrics.forget(Source("a", "ns/c"))
    assert sorted(shown(metrics)) == [
        'a_added_total{cluster=""} 1.0',
        'a_added_total{cluster="ns/a"} 2.0',
        'a_nodes{cluster="",state="ready"} 1.0',
        'a_nodes{cluster="ns/a",state="ready"} 4.0',
    ]
