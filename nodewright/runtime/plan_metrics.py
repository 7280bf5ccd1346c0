"""Metrics that reconcilers give with their plans: what the last one said, and totals over all that were carried out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from controllers.kernel.plan import Metric, Sample
from nodewright.runtime import metrics


class Metrics(Collector):
    """Shows only what was reported: a metric of a reconciler that does not run would read as 0."""

    def __init__(self) -> None:
        self._now: dict[str, dict[Metric, dict[tuple[str, ...], float]]] = {}
        self._totals: dict[Metric, dict[tuple[str, ...], float]] = {}

    def report(self, reconciler: str, samples: Iterable[Sample], succeeded: bool) -> None:
        """What the reconciler said before and does not say again is no longer shown, but for totals."""
        fresh: dict[Metric, dict[tuple[str, ...], float]] = {}
        for sample in samples:
            if not sample.metric.total:
                fresh.setdefault(sample.metric, {})[sample.labels] = sample.value
            elif succeeded:
                values = self._totals.setdefault(sample.metric, {})
                values[sample.labels] = values.get(sample.labels, 0) + sample.value
        self._now[reconciler] = fresh

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        for shown in (self._totals, *self._now.values()):
            for metric, values in shown.items():
                family = CounterMetricFamily if metric.total else GaugeMetricFamily
                found = family(metric.name, metric.meaning, labels=metric.labels)
                for labels, value in values.items():
                    found.add_metric(labels, value)
                yield found


PLAN_METRICS = Metrics()
metrics.REGISTRY.register(PLAN_METRICS)
