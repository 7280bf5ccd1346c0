"""Metrics that reconcilers give with their plans: what the last one last, and totals over all that were carried out.

All have one label more than they name: ``cluster``, ``namespace/name`` of the Cluster whose API the reconcile saw, ""
for the management cluster (Prometheus takes an empty label for none).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from controllers.kernel.plan import Metric, Sample
from nodewright.runtime.telemetry import metrics

CLUSTER = "cluster"
_Values = dict[Metric, dict[tuple[str, ...], float]]


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """Who says something: a reconciler, and of which Cluster ("": the management cluster)."""

    reconciler: str
    cluster: str = ""


@dataclass(slots=True)
class _Reported:
    now: _Values = field(default_factory=dict)
    totals: _Values = field(default_factory=dict)


class Metrics(Collector):
    """Shows only what was reported: a metric of a reconciler that does not run would read as 0."""

    def __init__(self) -> None:
        self._reported: dict[Source, _Reported] = {}

    def report(self, source: Source, samples: Iterable[Sample], succeeded: bool) -> None:
        """What the source reported before and does not say again is no longer shown, but for totals."""
        last = self._reported.setdefault(source, _Reported())
        last.now = {}
        for sample in samples:
            labels = (*sample.labels, source.cluster)
            if not sample.metric.total:
                last.now.setdefault(sample.metric, {})[labels] = sample.value
            elif succeeded:
                values = last.totals.setdefault(sample.metric, {})
                values[labels] = values.get(labels, 0) + sample.value

    def forget(self, source: Source) -> None:
        """Nothing of it is shown any more: its Cluster is gone, or is somebody else's."""
        self._reported.pop(source, None)

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        shown: _Values = {}
        for last in self._reported.values():
            for values in (last.totals, last.now):
                for metric, by_labels in values.items():
                    shown.setdefault(metric, {}).update(by_labels)
        for metric, by_labels in shown.items():
            family = CounterMetricFamily if metric.total else GaugeMetricFamily
            found = family(metric.name, metric.meaning, labels=(*metric.labels, CLUSTER))
            for labels, value in by_labels.items():
                found.add_metric(labels, value)
            yield found


PLAN_METRICS = Metrics()
metrics.REGISTRY.register(PLAN_METRICS)
