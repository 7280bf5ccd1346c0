"""What runs pods: Deployments, ReplicaSets, DaemonSets, StatefulSets, Jobs and their like."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from nodewright.controlplane.store.scaling import selector_text
from nodewright.controlplane.table import ages
from nodewright.controlplane.table.builtin.basics import (
    age,
    container_cells,
    deleting,
    has_condition,
    items,
    labels_text,
    selector_or_none,
)
from nodewright.controlplane.table.printer import NONE, UNSET, Printer, columns, name_of, part
from nodewright.controlplane.values import Obj


def _pod_spec(obj: Obj) -> Obj:
    return part(obj, "spec", "template", "spec")


def _ready_of(obj: Obj) -> str:
    return f"{part(obj, 'status').get('readyReplicas', 0)}/{part(obj, 'spec').get('replicas', 0)}"


def _deployment(obj: Obj, now: datetime) -> list[Any]:
    status = part(obj, "status")
    return [
        name_of(obj),
        _ready_of(obj),
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj, now),
        *container_cells(_pod_spec(obj)),
        selector_text(part(obj, "spec", "selector")),
    ]


def _replica_set(obj: Obj, now: datetime) -> list[Any]:
    return [*_replicas(obj, now), selector_or_none(part(obj, "spec", "selector"))]


def _replication_controller(obj: Obj, now: datetime) -> list[Any]:
    return [*_replicas(obj, now), labels_text(part(obj, "spec", "selector"))]


def _replicas(obj: Obj, now: datetime) -> list[Any]:
    status = part(obj, "status")
    counts = [part(obj, "spec").get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [name_of(obj), *counts, age(obj, now), *container_cells(_pod_spec(obj))]


def _daemon_set(obj: Obj, now: datetime) -> list[Any]:
    status = part(obj, "status")
    return [
        name_of(obj),
        status.get("desiredNumberScheduled", 0),
        status.get("currentNumberScheduled", 0),
        status.get("numberReady", 0),
        status.get("updatedNumberScheduled", 0),
        status.get("numberAvailable", 0),
        labels_text(part(_pod_spec(obj), "nodeSelector")),
        age(obj, now),
        *container_cells(_pod_spec(obj)),
        selector_or_none(part(obj, "spec", "selector")),
    ]


def _stateful_set(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), _ready_of(obj), age(obj, now), *container_cells(_pod_spec(obj))]


def _job(obj: Obj, now: datetime) -> list[Any]:
    return [
        name_of(obj),
        _job_state(obj),
        _completions(part(obj, "spec"), part(obj, "status").get("succeeded", 0)),
        _job_duration(part(obj, "status"), now),
        age(obj, now),
        *container_cells(_pod_spec(obj)),
        selector_or_none(part(obj, "spec", "selector")),
    ]


def _job_state(obj: Obj) -> str:
    conditions = items(part(obj, "status"), "conditions")
    for type_ in ("Complete", "Failed"):
        if has_condition(conditions, type_):
            return type_
    if deleting(obj):
        return "Terminating"
    later = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((type_ for type_ in later if has_condition(conditions, type_)), "Running")


def _completions(spec: Obj, succeeded: int) -> str:
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism", 0)
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(status: Obj, now: datetime) -> str:
    start = ages.moment(status.get("startTime"))
    return "" if start is None else ages.between(start, ages.moment(status.get("completionTime")) or now)


def _cron_job(obj: Obj, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    last = status.get("lastScheduleTime")
    suspend = spec.get("suspend")
    job_spec = part(spec, "jobTemplate", "spec")
    return [
        name_of(obj),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        UNSET if suspend is None else str(bool(suspend)),
        len(items(status, "active")),
        ages.since(last, now) if last else NONE,
        age(obj, now),
        *container_cells(part(job_spec, "template", "spec")),
        selector_or_none(part(job_spec, "selector")),
    ]


def _controller_revision(obj: Obj, now: datetime) -> list[Any]:
    owners = items(part(obj, "metadata"), "ownerReferences")
    controller = next((_owner_text(owner) for owner in owners if owner.get("controller")), NONE)
    return [name_of(obj), controller, obj.get("revision", 0), age(obj, now)]


def _owner_text(owner: Obj) -> str:
    group = owner.get("apiVersion", "").rpartition("/")[0]
    kind = owner.get("kind", "").lower()
    return f"{kind}.{group}/{owner.get('name', '')}" if group else f"{kind}/{owner.get('name', '')}"


def _scale(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), part(obj, "spec").get("replicas", 0), part(obj, "status").get("replicas", 0), age(obj, now)]


_REPLICAS = "Name | Desired:integer | Current:integer | Ready:integer | Age | +Containers | +Images | +Selector"

PRINTERS = {
    ("apps/v1", "Deployment"): Printer(
        columns("Name | Ready | Up-to-date | Available | Age | +Containers | +Images | +Selector"), _deployment
    ),
    ("apps/v1", "ReplicaSet"): Printer(columns(_REPLICAS), _replica_set),
    ("v1", "ReplicationController"): Printer(columns(_REPLICAS), _replication_controller),
    ("apps/v1", "DaemonSet"): Printer(
        columns(
            "Name | Desired:integer | Current:integer | Ready:integer | Up-to-date:integer | Available:integer"
            " | Node Selector | Age | +Containers | +Images | +Selector"
        ),
        _daemon_set,
    ),
    ("apps/v1", "StatefulSet"): Printer(columns("Name | Ready | Age | +Containers | +Images"), _stateful_set),
    ("apps/v1", "ControllerRevision"): Printer(columns("Name | Controller | Revision | Age"), _controller_revision),
    ("batch/v1", "Job"): Printer(
        columns("Name | Status | Completions | Duration | Age | +Containers | +Images | +Selector"), _job
    ),
    ("batch/v1", "CronJob"): Printer(
        columns(
            "Name | Schedule | Timezone | Suspend:boolean | Active:integer | Last Schedule | Age | +Containers"
            " | +Images | +Selector"
        ),
        _cron_job,
    ),
    ("", "Scale"): Printer(columns("Name | Desired:integer | Available:integer | Age"), _scale),
}
