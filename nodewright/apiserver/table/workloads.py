"""The tables of what runs pods: Deployments, ReplicaSets, DaemonSets, StatefulSets, Jobs and their kin."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from nodewright.apiserver.table.layout import AGE, NAME, Cells, Layout, boolean, number, text, wide
from nodewright.apiserver.table.wording import (
    NONE,
    age,
    at,
    condition,
    human_duration,
    joined,
    labels_text,
    name,
    parse_time,
    selector_text,
    since,
)
from nodewright.apiserver.values import Obj

_CONTAINERS: Final = wide(text("Containers", "Names of the containers of the template."))
_IMAGES: Final = wide(text("Images", "Images of the containers of the template."))
_SELECTOR: Final = wide(text("Selector", "Which pods belong to it."))


def _containers(template: Any) -> Cells:
    containers = at(template, "spec", "containers", default=())
    return [joined(c.get("name", "") for c in containers), joined(c.get("image", "") for c in containers)]


def _template(obj: Obj) -> Any:
    return at(obj, "spec", "template", default={})


def _status(obj: Obj, field: str) -> int:
    return int(at(obj, "status", field, default=0))


def _wanted(obj: Obj) -> int:
    return int(at(obj, "spec", "replicas", default=1))


def _deployment(obj: Obj, now: datetime) -> Cells:
    ready = f"{_status(obj, 'readyReplicas')}/{_wanted(obj)}"
    counts = [_status(obj, "updatedReplicas"), _status(obj, "availableReplicas")]
    selector = selector_text(at(obj, "spec", "selector"))
    return [name(obj), ready, *counts, age(obj, now), *_containers(_template(obj)), selector]


def _replica_set(obj: Obj, now: datetime) -> Cells:
    counts = [_wanted(obj), _status(obj, "replicas"), _status(obj, "readyReplicas")]
    selector = selector_text(at(obj, "spec", "selector"))
    return [name(obj), *counts, age(obj, now), *_containers(_template(obj)), selector]


def _replication_controller(obj: Obj, now: datetime) -> Cells:
    return [*_replica_set(obj, now)[:-1], labels_text(at(obj, "spec", "selector"))]


_DAEMON_COUNTS: Final = (
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
)


def _daemon_set(obj: Obj, now: datetime) -> Cells:
    nodes = labels_text(at(obj, "spec", "template", "spec", "nodeSelector"))
    counts = [_status(obj, field) for field in _DAEMON_COUNTS]
    selector = selector_text(at(obj, "spec", "selector"))
    return [name(obj), *counts, nodes, age(obj, now), *_containers(_template(obj)), selector]


def _stateful_set(obj: Obj, now: datetime) -> Cells:
    ready = f"{_status(obj, 'readyReplicas')}/{_wanted(obj)}"
    return [name(obj), ready, age(obj, now), *_containers(_template(obj))]


_JOB_STATES: Final = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _job_state(obj: Obj) -> str:
    for kind, state in _JOB_STATES:
        if not kind and at(obj, "metadata", "deletionTimestamp"):
            return state
        if kind and condition(obj, kind).get("status") == "True":
            return state
    return "Running"


def _job_duration(obj: Obj, now: datetime) -> str:
    started = parse_time(at(obj, "status", "startTime"))
    if started is None:
        return ""
    ended = parse_time(at(obj, "status", "completionTime")) or now
    return human_duration((ended - started).total_seconds())


def _job(obj: Obj, now: datetime) -> Cells:
    wanted, parallel = at(obj, "spec", "completions"), at(obj, "spec", "parallelism", default=0)
    of_all = str(wanted) if wanted is not None else f"1 of {parallel}" if parallel > 1 else "1"
    completions = f"{_status(obj, 'succeeded')}/{of_all}"
    selector = selector_text(at(obj, "spec", "selector"))
    progress = [_job_state(obj), completions, _job_duration(obj, now)]
    return [name(obj), *progress, age(obj, now), *_containers(_template(obj)), selector]


def _cron_job(obj: Obj, now: datetime) -> Cells:
    suspended = at(obj, "spec", "suspend")
    last = at(obj, "status", "lastScheduleTime")
    return [
        name(obj),
        at(obj, "spec", "schedule", default=""),
        at(obj, "spec", "timeZone", default=NONE),
        "<unset>" if suspended is None else str(bool(suspended)),
        len(at(obj, "status", "active", default=())),
        since(last, now) if last else NONE,
        age(obj, now),
        *_containers(at(obj, "spec", "jobTemplate", "spec", "template", default={})),
        selector_text(at(obj, "spec", "jobTemplate", "spec", "selector")),
    ]


def _pod_template(obj: Obj, _: datetime) -> Cells:
    template = at(obj, "template", default={})
    return [name(obj), *_containers(template), labels_text(at(template, "metadata", "labels"))]


def _controller_revision(obj: Obj, now: datetime) -> Cells:
    owners = [owner for owner in at(obj, "metadata", "ownerReferences", default=()) if owner.get("controller")]
    controller = NONE
    if owners:
        group = str(owners[0].get("apiVersion", "")).rpartition("/")[0]
        kind = str(owners[0].get("kind", "")).lower()
        controller = f"{kind}{'.' + group if group else ''}/{owners[0].get('name', '')}"
    return [name(obj), controller, obj.get("revision", 0), age(obj, now)]


def _disruption_budget(obj: Obj, now: datetime) -> Cells:
    bounds = [str(at(obj, "spec", field, default="N/A")) for field in ("minAvailable", "maxUnavailable")]
    return [name(obj), *bounds, _status(obj, "disruptionsAllowed"), age(obj, now)]


_REPLICAS: Final = (NAME, number("Desired"), number("Current"), number("Ready"), AGE, _CONTAINERS, _IMAGES, _SELECTOR)

LAYOUTS: Final = {
    ("apps", "Deployment"): Layout(
        (
            NAME,
            text("Ready", "Pods that are ready, of those wanted."),
            text("Up-to-date", "Pods of the newest template."),
            text("Available", "Pods that have been ready for long enough."),
            AGE,
            _CONTAINERS,
            _IMAGES,
            _SELECTOR,
        ),
        _deployment,
    ),
    ("apps", "ReplicaSet"): Layout(_REPLICAS, _replica_set),
    ("", "ReplicationController"): Layout(_REPLICAS, _replication_controller),
    ("apps", "DaemonSet"): Layout(
        (
            NAME,
            number("Desired"),
            number("Current"),
            number("Ready"),
            number("Up-to-date"),
            number("Available"),
            text("Node Selector", "Which nodes run a pod."),
            AGE,
            _CONTAINERS,
            _IMAGES,
            _SELECTOR,
        ),
        _daemon_set,
    ),
    ("apps", "StatefulSet"): Layout((NAME, text("Ready"), AGE, _CONTAINERS, _IMAGES), _stateful_set),
    ("apps", "ControllerRevision"): Layout((NAME, text("Controller"), text("Revision"), AGE), _controller_revision),
    ("batch", "Job"): Layout(
        (NAME, text("Status"), text("Completions"), text("Duration"), AGE, _CONTAINERS, _IMAGES, _SELECTOR), _job
    ),
    ("batch", "CronJob"): Layout(
        (
            NAME,
            text("Schedule"),
            text("Timezone"),
            boolean("Suspend"),
            number("Active"),
            text("Last Schedule"),
            AGE,
            _CONTAINERS,
            _IMAGES,
            _SELECTOR,
        ),
        _cron_job,
    ),
    ("", "PodTemplate"): Layout((NAME, text("Containers"), text("Images"), text("Pod Labels")), _pod_template),
    ("policy", "PodDisruptionBudget"): Layout(
        (
            NAME,
            text("Min Available", "How many pods must stay."),
            text("Max Unavailable", "How many pods may be missing."),
            number("Allowed Disruptions", "How many pods may be evicted now."),
            AGE,
        ),
        _disruption_budget,
    ),
}
