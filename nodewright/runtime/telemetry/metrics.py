"""Every metric of the program in one table (``TABLE``); the documentation, the dashboard and the alerts are held to it.

Names follow the Prometheus conventions: base units (seconds), ``_total`` for counters. Labels are of bounded
cardinality: no names of objects but those of MachineDeployments and MachineSets, and of these a bounded number.

Most are counted where something happens. Those made by ``_state`` are read from the caches and queues when they are
asked for (``collectors``), so that nothing has to be kept current in between.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

from api.names import API_VERSION
from nodewright import __version__

disable_created_metrics()  # type: ignore[no-untyped-call]  # a series more each, which nobody asks for
REGISTRY = CollectorRegistry(auto_describe=True)
ProcessCollector(registry=REGISTRY)  # CPU, memory and open files, under the names that all programs share


@dataclass(frozen=True, slots=True)
class Metric:
    """One line of the table. ``unit`` "" counts things."""

    name: str
    type: str
    labels: tuple[str, ...]
    unit: str
    meaning: str


TABLE: dict[str, Metric] = {}
"""By full name, as it is scraped (histograms: without ``_bucket``, ``_sum`` and ``_count``)."""

_CALLS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_LIVES = (1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 180.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0)
"""Bounds for what takes a machine's time: hosts boot in seconds to half an hour."""


def _entered(name: str, type_: str, help_: str, labels: tuple[str, ...]) -> str:
    unit = "seconds" if name.removesuffix("_total").endswith("seconds") else ""
    TABLE[f"nodewright_{name}"] = Metric(f"nodewright_{name}", type_, labels, unit, help_)
    return f"nodewright_{name}"


def _counter(name: str, help_: str, *labels: str) -> Counter:
    return Counter(_entered(name, "counter", help_, labels), help_, labels, registry=REGISTRY)


def _gauge(name: str, help_: str, *labels: str) -> Gauge:
    return Gauge(_entered(name, "gauge", help_, labels), help_, labels, registry=REGISTRY)


def _seconds(name: str, help_: str, *labels: str) -> Histogram:
    entered = _entered(name, "histogram", help_, labels)
    return Histogram(entered, help_, labels, registry=REGISTRY, buckets=_CALLS)


def _life(name: str, help_: str, *labels: str) -> Histogram:
    entered = _entered(name, "histogram", help_, labels)
    return Histogram(entered, help_, labels, registry=REGISTRY, buckets=_LIVES)


def _state(name: str, help_: str, *labels: str) -> Metric:
    return TABLE[_entered(name, "gauge", help_, labels)]


BUILD_INFO: Final = _gauge(
    "build_info", "Always 1; the labels say which version runs, and by which Python.", "version", "python", "api"
)
BUILD_INFO.labels(__version__, platform.python_version(), API_VERSION).set(1)


@lru_cache(maxsize=4096)
def of(metric: Any, *labels: str) -> Any:
    """The child of ``metric`` for ``labels``; looking one up in the metric itself costs ten times as much."""
    return metric.labels(*labels)


# What the objects say.
MACHINES = _state("machines", "Machines by phase.", "phase")
MACHINES_DELETING = _state(
    "machines_deleting",
    "Machines that are being deleted, by what they wait for (reason of the condition Deleting or Drained).",
    "reason",
)
DELETION_OLDEST = _state("machine_deletion_oldest_seconds", "How long the longest of these deletions has taken.")
DEPLOYMENT_DESIRED = _state(
    "machinedeployment_spec_replicas", "Machines that a MachineDeployment asks for.", "namespace", "name"
)
DEPLOYMENT_REPLICAS = _state("machinedeployment_status_replicas", "Machines that it has.", "namespace", "name")
DEPLOYMENT_READY = _state("machinedeployment_status_replicas_ready", "Ready ones.", "namespace", "name")
DEPLOYMENT_AVAILABLE = _state("machinedeployment_status_replicas_available", "Available ones.", "namespace", "name")
DEPLOYMENT_UPDATED = _state(
    "machinedeployment_status_replicas_updated", "Those of its newest template.", "namespace", "name"
)
DEPLOYMENT_FAILED = _state(
    "machinedeployment_machines_failed", "Those that failed terminally (errorReason is set).", "namespace", "name"
)
SET_DESIRED = _state(
    "machineset_spec_replicas",
    "Machines that a MachineSet asks for. Sets of old revisions that have none are left out.",
    "namespace",
    "name",
)
SET_REPLICAS = _state("machineset_status_replicas", "Machines that it has.", "namespace", "name")
SET_READY = _state("machineset_status_replicas_ready", "Ready ones.", "namespace", "name")
SET_AVAILABLE = _state("machineset_status_replicas_available", "Available ones.", "namespace", "name")
SET_FAILED = _state(
    "machineset_machines_failed", "Those that failed terminally (errorReason is set).", "namespace", "name"
)

CHECKS = _state("machinehealthchecks", "MachineHealthChecks by reason of RemediationAllowed.", "reason")
UNHEALTHY = _state(
    "machinehealthcheck_machines_unhealthy", "Machines that health checks look at and that are not healthy."
)
MACHINES_WAITING = _state(
    "machines_waiting",
    "Machines without a host, by why (reason of InfrastructureReady).",
    "reason",
)

# How long Machines take.
MACHINE_REACHED = _life(
    "machine_reached_seconds", "From a Machine's creation until it was first seen in the phase.", "phase"
)
MACHINE_PHASE = _life("machine_phase_seconds", "How long Machines stayed in a phase, once they left it.", "phase")
MACHINE_DELETED = _life("machine_deletion_seconds", "From the request to delete a Machine until it was gone.")

# The API server.
KUBE_REQUESTS = _counter(
    "kube_requests_total", "Answers of the API server; code 0 is no answer.", "controller", "verb", "resource", "code"
)
KUBE_SECONDS = _seconds("kube_request_seconds", "How long the API server took, without our own waiting.", "verb")
KUBE_RETRIES = _counter("kube_retries_total", "Requests sent again.", "verb", "why")

# The caches.
WATCH_EVENTS = _counter("watch_events_total", "Events read from watches.", "kind", "type")
WATCH_ENDS = _counter("watch_ends_total", "Watches that ended, by why.", "kind", "why")
LISTS = _counter("lists_total", "Complete lists read, by why.", "kind", "why")
WORKLOAD_CLUSTERS = _gauge("workload_clusters", "Clusters with an API of their own: Reachable or Unreachable.", "state")
CACHE_OBJECTS = _gauge("cache_objects", "Objects in the cache.", "kind")
MALFORMED = _counter(
    "malformed_objects_total", "Versions of objects of which parts of a wrong type were left out, or all.", "kind"
)
CERTIFICATE_EXPIRY = _state(
    "cluster_certificate_expiry_seconds",
    "Until the first certificate of the kind ends, over all Clusters with an API of their own; below 0: it has ended.",
    "kind",
)
CACHE_STALENESS = _state(
    "cache_staleness_seconds",
    "Since the last sign of life of the kind's watch; a quiet kind is heard of about once a minute. +Inf: never yet.",
    "kind",
)

# Reconciles.
RECONCILES = _counter("reconciles_total", "Reconciles by their result.", "controller", "result")
RECONCILES_HELD_BACK = _counter(
    "reconciles_held_back_total", "Reconciles of keys that repeat their writes.", "controller"
)
LOOP_HELD_SECONDS = _seconds(
    "reconcile_loop_held_seconds",
    "Longest time that a reconcile kept the event loop from all others without a break, as CPU time of its thread; "
    "0.05 is the bound.",
    "controller",
)
RECONCILE_SECONDS = _seconds("reconcile_seconds", "One reconcile, from observing to the last write.", "controller")
RETRIES = _counter("retries_total", "Reconciles that are to be repeated with back-off.", "controller")
RECONCILER_ERRORS = _counter(
    "reconciler_errors_total", "Unexpected exceptions in a controller; always a bug.", "controller"
)
QUEUE_DEPTH = _state("queue_depth", "Keys that wait for a worker.", "controller")
QUEUE_OLDEST = _state(
    "queue_oldest_seconds", "How long the first of these keys has waited; 0 if none does.", "controller"
)
QUEUE_BACKING_OFF = _state("queue_backing_off", "Keys whose last reconcile failed.", "controller")
QUEUE_SECONDS = _seconds("queue_seconds", "How long a key waited for a worker.", "controller")
LEADER = _gauge("leader", "1 while this process holds the Lease.", "lease")


# What reconciles do.
ACTIONS = _counter("actions_total", "Actions of plans, by what became of them.", "controller", "action", "result")
EVENTS = _counter("events_total", "Kubernetes Events by what became of them.", "result")

# Providers.
HOST_CALLS = _counter("host_calls_total", "Provider calls by result (error class, or ok).", "scope", "call", "result")
HOST_SECONDS = _seconds("host_call_seconds", "How long provider calls took.", "scope", "call")
HOSTS = _gauge("hosts", "Hosts that the provider lists, by state.", "scope", "state")
ORPHANS = _gauge("orphan_hosts", "Hosts that no Machine knows, proven so.", "scope")
HOST_BREAKER = _gauge("host_breaker_open", "1 while calls to the scope pause.", "scope")
HOST_QUEUE = _gauge("host_call_queue", "Provider calls that wait for their turn.", "scope")

# Admission.
REVIEWS = _counter(
    "admission_reviews_total", "Objects reviewed by the webhook: allowed, refused or unreadable.", "kind", "result"
)
REVIEW_SECONDS = _seconds("admission_review_seconds", "How long a review took.")
WEBHOOK_CERTIFICATE_EXPIRY = _gauge(
    "webhook_certificate_expiry_timestamp_seconds", "When the webhook's certificate ends (Unix time)."
)

# The Cluster Autoscaler over gRPC.
GRPC_CALLS = _counter(
    "externalgrpc_calls_total", "Calls of `nodewright gateway externalgrpc`, by gRPC status.", "method", "code"
)
GRPC_SECONDS = _seconds("externalgrpc_call_seconds", "How long such a call took.", "method")
GRPC_HANDSHAKES_REFUSED = _counter(
    "externalgrpc_handshakes_refused_total", "TLS handshakes with the gateway that came to nothing.", "reason"
)
GRPC_CERTIFICATE_EXPIRY = _gauge(
    "externalgrpc_certificate_expiry_timestamp_seconds", "When the gateway's certificate ends (Unix time)."
)

# Cloudpools.
CLOUDPOOL_CERTIFICATE_EXPIRY = _gauge(
    "cloudpool_certificate_expiry_timestamp_seconds", "When the certificate of a cloudpool gateway ends (Unix time)."
)
CLOUDPOOL_REQUESTS = _counter(
    "cloudpool_requests_total", "Requests to a cloudpool gateway by what was asked and how it ended.", "route", "code"
)
CLOUDPOOL_SECONDS = _seconds("cloudpool_request_seconds", "How long an answer took.", "route")
CLOUDPOOL_VICTIMS = _counter(
    "cloudpool_victims_total", "Machines that a proxy began to take away: removed, failed or put back.", "result"
)
CLOUDPOOL_MISSING = _gauge(
    "cloudpool_scale_down_missing", "Machines by which the last scale-down fell short of what was asked for."
)
CLOUDPOOL_OPERATIONS = _gauge("cloudpool_operations", "Changes of size and terminations under way or waiting.")
