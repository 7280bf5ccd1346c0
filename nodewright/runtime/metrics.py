"""Every metric of the runtime in one table; ``docs`` and dashboards are held to it.

Names follow the Prometheus conventions: base units (seconds), ``_total`` for counters. Labels are of bounded
cardinality: no object names.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

REGISTRY = CollectorRegistry(auto_describe=True)

_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


def _counter(name: str, help_: str, *labels: str) -> Counter:
    return Counter(f"nodewright_{name}", help_, labels, registry=REGISTRY)


def _gauge(name: str, help_: str, *labels: str) -> Gauge:
    return Gauge(f"nodewright_{name}", help_, labels, registry=REGISTRY)


def _seconds(name: str, help_: str, *labels: str) -> Histogram:
    return Histogram(f"nodewright_{name}", help_, labels, registry=REGISTRY, buckets=_SECONDS)


@lru_cache(maxsize=4096)
def of(metric: Any, *labels: str) -> Any:
    """The child of ``metric`` for ``labels``; looking one up in the metric itself costs ten times as much."""
    return metric.labels(*labels)


KUBE_REQUESTS = _counter(
    "kube_requests_total", "Answers of the API server; code 0 is no answer.", "controller", "verb", "resource", "code"
)
KUBE_SECONDS = _seconds("kube_request_seconds", "How long the API server took, without our own waiting.", "verb")
KUBE_RETRIES = _counter("kube_retries_total", "Requests sent again.", "verb", "why")

WATCH_EVENTS = _counter("watch_events_total", "Events read from watches.", "kind", "type")
WATCH_ENDS = _counter("watch_ends_total", "Watches that ended, by why.", "kind", "why")
LISTS = _counter("lists_total", "Complete lists read, by why.", "kind", "why")
CACHE_OBJECTS = _gauge("cache_objects", "Objects in the cache.", "kind")

ROUNDS = _counter("rounds_total", "Rounds by their result.", "room", "result")
ROUNDS_HELD_BACK = _counter("rounds_held_back_total", "Rounds of keys that write in every round.", "room")
ROUND_SECONDS = _seconds("round_seconds", "One round, from observing to the last write.", "room")
ROOM_ERRORS = _counter("room_errors_total", "Unexpected exceptions in a room; always a bug.", "room")
QUEUE_DEPTH = _gauge("queue_depth", "Keys that wait for a worker.", "room")
QUEUE_SECONDS = _seconds("queue_seconds", "How long a key waited for a worker.", "room")

ACTIONS = _counter("actions_total", "Actions of plans, by what became of them.", "room", "action", "result")
EVENTS = _counter("events_total", "Kubernetes Events by what became of them.", "result")

HOST_CALLS = _counter("host_calls_total", "Provider calls by result (error class, or ok).", "scope", "call", "result")
HOST_SECONDS = _seconds("host_call_seconds", "How long provider calls took.", "call")
HOSTS = _gauge("hosts", "Hosts that the provider lists, by state.", "scope", "state")
ORPHANS = _gauge("orphan_hosts", "Hosts that no Machine knows, proven so.", "scope")
HOST_BREAKER = _gauge("host_breaker_open", "1 while calls to the scope pause.", "scope")
HOST_QUEUE = _gauge("host_call_queue", "Provider calls that wait for their turn.", "scope")
