"""What the caches and queues hold, counted at the moment somebody asks: the metrics made by ``metrics._state``.

One walk over Machines and their owners per scrape; nothing is kept, so nothing can be out of step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from prometheus_client.core import GaugeMetricFamily

from api.conditions import HealthCheckCondition, MachineCondition, Reason
from api.names import MachinePhase
from controllers.kernel.conditions import find, parse_time
from controllers.kernel.machine_facts import is_failed
from controllers.kernel.ownership import controller_uid
from controllers.kernel.refs import (
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_HEALTH_CHECK,
    MACHINE_SET,
    Key,
    Kind,
    Obj,
    key_of,
    uid_of,
)
from nodewright.runtime.telemetry import metrics
from nodewright.runtime.telemetry.metrics import Metric
from providers.base.errors import ErrorClass

MOST_OWNERS = 1000
"""MachineDeployments shown by name, and as many MachineSets: those that ask for most. The rest are summed."""
OTHERS = Key("", "(others)")
_UNSAID = "Unknown"
"""Reason that nobody has written down yet."""
_OTHER = "Other"
"""Reason that is none of ours: whoever may write a status writes any text there, a new one each time."""
_REASONS = frozenset({*map(str, Reason), *map(str, ErrorClass)})

Sample = tuple[tuple[str, ...], float]


class Stores(Protocol):
    """What is needed of a Cache."""

    @property
    def stores(self) -> Mapping[Kind, Iterable[Obj]]: ...


class Queue(Protocol):
    """What is needed of a WorkQueue."""

    def __len__(self) -> int: ...
    @property
    def oldest(self) -> float: ...
    @property
    def backing_off(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Scene:
    """What is counted. ``staleness`` by kind, in seconds; ``certificates``: kind and end of each that is known."""

    cache: Stores
    queues: Mapping[str, Queue]
    staleness: Mapping[Kind, float]
    now: datetime
    certificates: Sequence[tuple[str, datetime]] = ()


def families(scene: Scene) -> Iterator[GaugeMetricFamily]:
    """All of them, with and without samples."""
    machines = list(scene.cache.stores.get(MACHINE, ()))
    yield from _machines(machines, scene.now)
    sets = list(scene.cache.stores.get(MACHINE_SET, ()))
    failed = Counter(controller_uid(m) for m in machines if is_failed(_part(m, "status")))
    alive = [found for found in sets if not _is_history(found)]
    yield from _owners(alive, _SET, metrics.SET_FAILED, failed)
    deployments = scene.cache.stores.get(MACHINE_DEPLOYMENT, ())
    yield from _owners(deployments, _DEPLOYMENT, metrics.DEPLOYMENT_FAILED, _by_deployment(failed, sets))
    yield from _checks(scene.cache.stores.get(MACHINE_HEALTH_CHECK, ()))
    yield _family(metrics.QUEUE_DEPTH, [((name,), len(queue)) for name, queue in scene.queues.items()])
    yield _family(metrics.QUEUE_OLDEST, [((name,), queue.oldest) for name, queue in scene.queues.items()])
    yield _family(metrics.QUEUE_BACKING_OFF, [((name,), queue.backing_off) for name, queue in scene.queues.items()])
    yield _certificates(scene)
    yield _family(metrics.CACHE_STALENESS, [((kind.name,), age) for kind, age in scene.staleness.items()])


def _by_deployment(failed: Mapping[str, int], sets: Iterable[Obj]) -> Counter[str]:
    """``failed`` by UID of a MachineSet → by UID of the MachineDeployment that owns it."""
    deployment_of = {uid_of(found): controller_uid(found) for found in sets}
    failed_below = Counter[str]()
    for uid, count in failed.items():
        failed_below[deployment_of.get(uid, "")] += count
    return failed_below


def _certificates(scene: Scene) -> GaugeMetricFamily:
    """Of each kind, the one that ends first."""
    ends: dict[str, datetime] = {}
    for kind, end in scene.certificates:
        ends[kind] = min(end, ends.get(kind, end))
    left = [((str(kind),), (end - scene.now).total_seconds()) for kind, end in ends.items()]
    return _family(metrics.CERTIFICATE_EXPIRY, left)


def _checks(checks: Iterable[Obj]) -> Iterator[GaugeMetricFamily]:
    """A short circuit is a reason other than RemediationAllowed, however many checks it stops."""
    reasons: Counter[str] = Counter()
    unhealthy = 0.0
    for check in checks:
        status = _part(check, "status")
        condition = find(_conditions(status), HealthCheckCondition.REMEDIATION_ALLOWED)
        reasons[_reason(condition)] += 1
        unhealthy += max(_number(status.get("expectedMachines")) - _number(status.get("currentHealthy")), 0)
    yield _family(metrics.CHECKS, [((reason,), count) for reason, count in reasons.items()])
    yield _family(metrics.UNHEALTHY, [((), unhealthy)])


_SET: Sequence[tuple[Metric, str, str]] = (
    (metrics.SET_DESIRED, "spec", "replicas"),
    (metrics.SET_REPLICAS, "status", "replicas"),
    (metrics.SET_READY, "status", "readyReplicas"),
    (metrics.SET_AVAILABLE, "status", "availableReplicas"),
)
_DEPLOYMENT: Sequence[tuple[Metric, str, str]] = (
    (metrics.DEPLOYMENT_DESIRED, "spec", "replicas"),
    (metrics.DEPLOYMENT_REPLICAS, "status", "replicas"),
    (metrics.DEPLOYMENT_READY, "status", "readyReplicas"),
    (metrics.DEPLOYMENT_AVAILABLE, "status", "availableReplicas"),
    (metrics.DEPLOYMENT_UPDATED, "status", "updatedReplicas"),
)


def _machines(machines: Iterable[Obj], now: datetime) -> Iterator[GaugeMetricFamily]:
    phases: Counter[str] = Counter({phase.value: 0 for phase in MachinePhase})
    waits: Counter[str] = Counter()
    hostless: Counter[str] = Counter()
    longest = 0.0
    for machine in machines:
        status = _part(machine, "status")
        phase = str(status.get("phase"))
        phases[phase if phase in phases else MachinePhase.PENDING.value] += 1
        since = parse_time(machine["metadata"].get("deletionTimestamp"))
        if since is None and not _part(machine, "spec").get("providerID"):
            host = find(_conditions(status), MachineCondition.INFRASTRUCTURE_READY)
            hostless[_reason(host)] += 1
        if since is not None:
            waits[_waits_for(status)] += 1
            longest = max(longest, (now - since).total_seconds())
    yield _family(metrics.MACHINES, [((phase,), count) for phase, count in phases.items()])
    yield _family(metrics.MACHINES_DELETING, [((reason,), count) for reason, count in waits.items()])
    yield _family(metrics.MACHINES_WAITING, [((reason,), count) for reason, count in hostless.items()])
    yield _family(metrics.DELETION_OLDEST, [((), longest)])


def _waits_for(status: Mapping[str, Any]) -> str:
    """A drain that still goes on says more than that the Machine is deleting."""
    readable = _conditions(status)
    for type_, settled in ((MachineCondition.DRAINED, "True"), (MachineCondition.DELETING, "")):
        condition = find(readable, type_)
        if condition is not None and condition.get("status") != settled and condition.get("reason"):
            return _reason(condition)
    return _UNSAID


def _reason(condition: Mapping[str, Any] | None) -> str:
    reason = (condition or {}).get("reason")
    if not reason:
        return _UNSAID
    return reason if isinstance(reason, str) and reason in _REASONS else _OTHER


def _conditions(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    conditions = status.get("conditions")
    return [c for c in conditions if isinstance(c, Mapping)] if isinstance(conditions, list) else []


def _owners(
    owners: Iterable[Obj], counts: Sequence[tuple[Metric, str, str]], failed: Metric, failures: Mapping[str, int]
) -> Iterator[GaugeMetricFamily]:
    rows: dict[Key, list[float]] = {}
    for owner in owners:
        numbers = [_number(_part(owner, part).get(field)) for _, part, field in counts]
        rows[key_of(owner)] = [*numbers, failures.get(uid_of(owner), 0)]
    for index, metric in enumerate((*(metric for metric, _, _ in counts), failed)):
        shown = _bounded(rows)
        yield _family(metric, [((key.namespace, key.name), row[index]) for key, row in shown.items()])


def _bounded(rows: Mapping[Key, list[float]]) -> dict[Key, list[float]]:
    if len(rows) <= MOST_OWNERS:
        return dict(rows)
    ranked = sorted(rows, key=lambda key: (-rows[key][0], key))
    shown = {key: rows[key] for key in ranked[:MOST_OWNERS]}
    shown[OTHERS] = [sum(column) for column in zip(*(rows[key] for key in ranked[MOST_OWNERS:]), strict=True)]
    return shown


def _is_history(machine_set: Obj) -> bool:
    """Kept by its MachineDeployment only so that one can go back to its template."""
    wanted, present = _part(machine_set, "spec").get("replicas"), _part(machine_set, "status").get("replicas")
    return bool(controller_uid(machine_set)) and wanted == 0 and not present


def _family(metric: Metric, samples: Iterable[Sample]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(metric.name, metric.meaning, labels=metric.labels)
    for labels, value in samples:
        family.add_metric(labels, value)
    return family


def _part(obj: Obj, name: str) -> Mapping[str, Any]:
    found = obj.get(name)
    return found if isinstance(found, Mapping) else {}


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) else 0
