"""Metrics: the table is complete, what objects say is counted when asked, and how long Machines take is timed."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, NODE, Key, Kind
from nodewright import __version__
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.cache.store import Change
from nodewright.runtime.fleet import collectors
from nodewright.runtime.fleet.lifetimes import Lifetimes
from nodewright.runtime.queues.queue import WorkQueue
from nodewright.runtime.telemetry import metrics
from nodewright.runtime.telemetry.plan_metrics import PLAN_METRICS
from tests.builders import hostile
from tests.builders.clock import NOW, ago
from tests.builders.objects import Builder, as_dict, machine, machine_deployment, machine_set, node
from tests.builders.view import kind_of
from tests.runtime.virtual_time import virtual_time


class HealthCheck(Builder):
    kind = "MachineHealthCheck"


@dataclass
class Stores:
    stores: dict[Kind, list[dict[str, Any]]] = field(default_factory=dict)


def counted(
    *objects: Builder,
    queues: Mapping[str, collectors.Queue] | None = None,
    staleness: Mapping[Kind, float] | None = None,
) -> dict[tuple[str, ...], float]:
    """Every sample of the census of ``objects``: (metric, label values…) → value."""
    found = Stores()
    for obj in map(as_dict, objects):
        found.stores.setdefault(kind_of(obj), []).append(obj)
    families = collectors.families(collectors.Scene(found, queues or {}, staleness or {}, NOW))
    return {
        (sample.name.removeprefix("nodewright_"), *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


def test_every_process_says_which_version_it_is() -> None:
    scraped = generate_latest(metrics.REGISTRY).decode()
    assert f'nodewright_build_info{{api="cluster.k8s.io/v1alpha1",python="{platform.python_version()}"' in scraped
    assert f'version="{__version__}"}} 1.0' in scraped


def test_machines_are_counted_by_phase_and_every_phase_is_there() -> None:
    found = counted(machine("a").ready(), machine("b").ready(), machine("c").failed(), machine("d"))
    assert found["machines", "Running"] == 2
    assert found["machines", "Failed"] == 1
    assert found["machines", "Pending"] == 1, "a Machine of which nothing is said yet"
    assert found["machines", "Deleting"] == 0


def test_deletions_are_counted_by_what_they_wait_for() -> None:
    drained = machine("a").deleting(90).condition("Drained", "False", "DrainBlocked")
    drained.condition("Deleting", "True", "Draining")
    done = (
        machine("b").deleting(20).condition("Drained", "True", "Drained").condition("Deleting", "True", "DeletingHost")
    )
    found = counted(drained, done, machine("c").deleting(5))
    assert found["machines_deleting", "DrainBlocked"] == 1
    assert found["machines_deleting", "DeletingHost"] == 1
    assert found["machines_deleting", "Unknown"] == 1
    assert found["machine_deletion_oldest_seconds",] == 90


@pytest.mark.parametrize("junk", [7, "x", [], {"phase": []}, {"phase": {}, "conditions": [3]}, {"conditions": {}}])
def test_a_status_of_any_shape_is_counted(junk: Any) -> None:
    odd = machine("odd").deleting(5)
    odd.body["status"] = junk
    found = counted(odd, machine("a").ready())
    assert found["machines", "Running"] == 1
    assert found["machines_deleting", "Unknown"] == 1
    street = Street()
    street.say(odd, "ADDED")


def test_machines_without_a_host_are_counted_by_what_they_wait_for() -> None:
    short, next_one = machine("a").short("QuotaExceeded"), machine("b").short("HostsInFlight")
    found = counted(short, next_one, machine("new"), machine("c").ready(), machine("d").deleting())
    waiting = {labels[0]: value for (name, *labels), value in found.items() if name == "machines_waiting"}
    assert waiting == {"QuotaExceeded": 1, "HostsInFlight": 1, "Unknown": 1}


def test_a_short_circuit_of_health_checks_is_counted_with_its_reason() -> None:
    well = HealthCheck("well").condition("RemediationAllowed", "True", "RemediationAllowed")
    well.status.update(expectedMachines=3, currentHealthy=3)
    stopped = HealthCheck("stopped").condition("RemediationAllowed", "False", "TooManyUnhealthy")
    stopped.status.update(expectedMachines=4, currentHealthy=1)
    found = counted(well, stopped, HealthCheck("new"))
    checks = {labels[0]: value for (name, *labels), value in found.items() if name == "machinehealthchecks"}
    assert checks == {"RemediationAllowed": 1, "TooManyUnhealthy": 1, "Unknown": 1}
    assert found["machinehealthcheck_machines_unhealthy",] == 3


def test_a_machine_set_says_what_it_wants_what_it_has_and_what_failed() -> None:
    ms = machine_set("ms").replicas(3)
    ms.status.update(replicas=3, readyReplicas=2, availableReplicas=1)
    found = counted(ms, machine("a").of(ms).ready(), machine("b").of(ms).failed())
    values = {name: value for (name, *labels), value in found.items() if labels == ["default", "ms"]}
    assert values == {
        "machineset_spec_replicas": 3,
        "machineset_status_replicas": 3,
        "machineset_status_replicas_ready": 2,
        "machineset_status_replicas_available": 1,
        "machineset_machines_failed": 1,
    }


def test_failures_are_counted_through_the_machine_sets_of_a_deployment() -> None:
    md = machine_deployment("md").replicas(2)
    new, old = machine_set("md-new").of(md), machine_set("md-old").of(md).replicas(1)
    found = counted(md, new, old, machine("a").of(new).failed(), machine("b").of(old).failed(), machine("c").failed())
    assert found["machinedeployment_machines_failed", "default", "md"] == 2
    assert found["machinedeployment_spec_replicas", "default", "md"] == 2


def test_empty_sets_of_old_revisions_are_not_shown() -> None:
    md = machine_deployment("md")
    found = counted(md, machine_set("old").of(md).replicas(0), machine_set("mine").replicas(0))
    assert ("machineset_spec_replicas", "default", "old") not in found
    assert found["machineset_spec_replicas", "default", "mine"] == 0, "nobody's history: a person's own set"


def test_owners_beyond_the_bound_are_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collectors, "MOST_OWNERS", 2)
    found = counted(*(machine_set(f"ms-{n}").replicas(n) for n in range(1, 6)))
    shown = {labels[1]: value for (name, *labels), value in found.items() if name == "machineset_spec_replicas"}
    assert shown == {"ms-5": 5, "ms-4": 4, "(others)": 6}


@virtual_time
async def test_a_queue_tells_its_depth_its_oldest_key_and_who_backs_off() -> None:
    import asyncio  # noqa: PLC0415

    queue: WorkQueue[str] = WorkQueue()
    assert counted(queues={"machine": queue})["queue_oldest_seconds", "machine"] == 0
    queue.add("a")
    await asyncio.sleep(7)
    queue.add("b")
    queue.retry("c", at_least=1000)
    found = counted(queues={"machine": queue})
    assert found["queue_depth", "machine"] == 2
    assert found["queue_oldest_seconds", "machine"] == 7
    assert found["queue_backing_off", "machine"] == 1
    queue.close()


def test_a_kind_never_heard_of_is_infinitely_stale() -> None:
    found = counted(staleness={MACHINE: 3.5, NODE: float("inf")})
    assert found["cache_staleness_seconds", "Machine"] == 3.5
    assert found["cache_staleness_seconds", "Node"] == float("inf")


def test_every_metric_is_in_the_table_with_the_labels_it_has() -> None:
    objects = {kind: [] for kind in (MACHINE, MACHINE_SET, MACHINE_DEPLOYMENT)}
    counted_now = {family.name for family in collectors.families(collectors.Scene(Stores(objects), {}, {}, NOW))}
    made = {name for name in vars(metrics).values() if isinstance(name, metrics.Metric)}
    assert {metric.name for metric in made} == counted_now
    reconcilers = CollectorRegistry()
    reconcilers.register(PLAN_METRICS)  # what rooms said in this process before is in tables of their own
    kept = scraped(metrics.REGISTRY) - scraped(reconcilers)
    assert set(metrics.TABLE) == kept | counted_now


def scraped(registry: CollectorRegistry) -> set[str]:
    """Names of our metrics."""
    text = generate_latest(registry).decode()
    return {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE nodewright_")}


def test_every_metric_has_a_meaning_and_a_base_unit() -> None:
    for metric in metrics.TABLE.values():
        assert metric.meaning.endswith("."), metric.name
        assert metric.type != "counter" or metric.name.endswith("_total")
        assert metric.type != "histogram" or metric.unit == "seconds"


class Street:
    """A cache with a Lifetimes on it, and a clock that the test moves. ``timed``: what was observed since."""

    def __init__(self) -> None:
        self.now = NOW
        self.cache = Cache((MACHINE, NODE))
        self.lifetimes = Lifetimes(self.cache, lambda: self.now)
        self._version = 1
        self._before = dict(_lives())

    def passes(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def say(self, obj: Builder, type_: str = "MODIFIED") -> None:
        self._version += 1
        self.cache.watched(kind_of(obj.build()), type_, obj.version(str(self._version)).build())

    def timed(self) -> dict[tuple[str, ...], float]:
        """Rounded: the sums go on from those of other tests."""
        passed = {key: round(value - self._before.get(key, 0.0), 6) for key, value in _lives()}
        return {key: seconds for key, seconds in passed.items() if seconds}


def _lives() -> Iterable[tuple[tuple[str, ...], float]]:
    for metric in (metrics.MACHINE_REACHED, metrics.MACHINE_PHASE, metrics.MACHINE_DELETED):
        for family in metric.collect():
            for sample in family.samples:
                if sample.name.endswith("_sum"):
                    yield (family.name.removeprefix("nodewright_machine_"), *sample.labels.values()), sample.value


def test_a_machine_on_its_way_is_timed_from_phase_to_phase() -> None:
    street = Street()
    m = machine("m").created(0)
    street.say(m, "ADDED")
    street.passes(3)
    street.say(m.provider_id("sim://m"))
    street.passes(40)
    street.say(node("m").of(m), "ADDED")
    street.passes(7)
    street.say(m.ready(0))
    street.say(m.annotated("a", "b"))
    assert street.timed() == {
        ("reached_seconds", "Provisioning"): 3,
        ("phase_seconds", "Pending"): 3,
        ("reached_seconds", "Provisioned"): 43,
        ("phase_seconds", "Provisioning"): 40,
        ("reached_seconds", "Running"): 50,
        ("phase_seconds", "Provisioned"): 7,
    }


def test_a_node_of_a_workload_cluster_counts_as_well() -> None:
    street = Street()
    m = machine("m").created(0).provider_id("sim://m")
    street.say(m, "ADDED")
    street.passes(9)
    street.lifetimes.node_elsewhere(
        Key("default", "remote"), Change(NODE, Key("", "m"), None, node("m").of(m).build()), False
    )
    assert street.timed() == {("reached_seconds", "Provisioned"): 9}


def test_what_was_there_before_is_timed_only_for_what_it_has_ahead() -> None:
    street = Street()
    m = machine("m").created(100)
    street.cache.listed(MACHINE, [m.version("1").build()], "1")
    assert street.timed() == {}
    street.passes(20)
    street.say(m.ready(0))
    assert street.timed() == {("reached_seconds", "Running"): 120}


def test_a_machine_that_runs_has_reached_it_once() -> None:
    street = Street()
    m = machine("m").created(100).ready()
    street.cache.listed(MACHINE, [m.version("1").build()], "1")
    m.status["phase"] = "Updating"
    street.say(m)
    street.passes(30)
    street.say(m.ready(0))
    assert street.timed() == {("phase_seconds", "Updating"): 30}


def test_a_deletion_is_timed_to_its_end() -> None:
    street = Street()
    m = machine("m").created(100).ready()
    street.cache.listed(MACHINE, [m.version("1").build()], "1")
    m.metadata.update(deletionTimestamp=ago(0), finalizers=["f"])
    street.say(m)
    street.passes(12)
    street.say(m, "DELETED")
    assert street.timed() == {("deletion_seconds",): 12}


def test_a_word_that_is_no_phase_makes_no_label_of_its_own() -> None:
    street = Street()
    m = machine("m").created(0)
    street.say(m, "ADDED")
    m.status["phase"] = "Levitating"
    street.passes(2)
    street.say(m)
    assert street.timed() == {("reached_seconds", "Unknown"): 2, ("phase_seconds", "Pending"): 2}


def marked(value: Any, above: tuple[str, ...] = ()) -> Any:
    """``value`` with a text that must not be told in every place but those by which objects are found."""
    if isinstance(value, dict):
        return {key: marked(each, (*above, key)) for key, each in value.items()}
    if isinstance(value, list):
        return [marked(each, above) for each in value]
    finds = above and above[-1] in {"type", "status", "uid", "kind", "apiVersion"}
    named = above in {("metadata", "name"), ("metadata", "namespace")}
    times = str(above[-1] if above else "").endswith(("Time", "Timestamp"))
    return value if finds or named or times or not isinstance(value, str) else f"s3cret {value}"


def test_the_page_holds_no_text_of_tenants_but_names_of_owners() -> None:
    found = Stores()
    for obj in [*hostile.world(), machine("waiting").ready().build()]:
        body = marked(obj)
        body["metadata"]["name"] = obj["metadata"]["name"]
        body.setdefault("status", {})["conditions"] = [
            {"type": type_, "status": "False", "reason": f"s3cret-{type_}", "message": "s3cret"}
            for type_ in ("Ready", "InfrastructureReady", "Drained", "Deleting", "RemediationAllowed")
        ]
        found.stores.setdefault(kind_of(obj), []).append(body)
    registry = CollectorRegistry()

    class Page:
        def collect(self) -> Iterable[Any]:
            return collectors.families(collectors.Scene(found, {}, {}, NOW))

    registry.register(Page())  # type: ignore[arg-type]
    page = generate_latest(registry).decode()
    assert "s3cret" not in page
    assert 'nodewright_machines_deleting{reason="Other"} 1.0' in page
    assert 'machineset="ms"' in page or 'name="ms"' in page


def test_reasons_are_those_that_are_known() -> None:
    body = as_dict(machine("a"))
    body.setdefault("status", {})["conditions"] = [
        {"type": "InfrastructureReady", "status": "False", "reason": "StockOut", "message": ""}
    ]
    assert counted(body)["machines_waiting", "StockOut"] == 1  # type: ignore[arg-type]
