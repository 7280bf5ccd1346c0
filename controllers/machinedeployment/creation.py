"""The MachineSets of a MachineDeployment: which is the current one, a new one, and which old ones to forget.

Which MachineSet is the current one, its revision number, and which old ones to forget.

Going back to an earlier template finds the MachineSet kept of it and makes that the current one again: this is how
``rollback`` works here, and nothing is created or deleted that need not be.

The MachineSet for a template that has none yet: its name derives from the template, so a repeat collides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api import names
from api.names import StrategyType
from controllers.kernel.actions import Create, Delete
from controllers.kernel.names import label_value, machine_set_name
from controllers.kernel.ownership import cluster_name_of, controller_uid, reference_to
from controllers.kernel.refs import MACHINE_DEPLOYMENT, MACHINE_SET, Obj, annotations_of, is_deleting, spec_of, uid_of
from controllers.kernel.template import rollout_part
from controllers.machinedeployment.observe import Observed, SetState, hash_for_new
from controllers.machinedeployment.rolling_update import scale_annotations

MAX_HISTORY_TEXT = 256
"""Characters kept of the list of earlier numbers."""


def current_set(observed: Observed) -> SetState | None:
    """The MachineSet of the deployment's template; of several, the one with the most Machines, then the oldest.

    Several can be left behind by other controllers (cluster-api#13649 made four); all but one are rolled away as old.
    """
    found = [state for state in observed.sets if state.current]
    return min(found, key=lambda state: (-state.members.existing, state.created, state.name), default=None)


def old_sets(observed: Observed) -> tuple[SetState, ...]:
    """All others, oldest first."""
    now = current_set(observed)
    return tuple(state for state in observed.sets if now is None or state.uid != now.uid)


def revision_of_current(observed: Observed) -> int:
    """One more than the highest number of the old ones; the current one keeps its number if it is above already."""
    now = current_set(observed)
    highest = max((state.revision for state in old_sets(observed)), default=0)
    return now.revision if now is not None and now.revision > highest else highest + 1


def revision_annotations(observed: Observed, state: SetState | None) -> dict[str, str]:
    """Annotations of the current MachineSet; the Cluster Autoscaler's hard-coded key beside ours (autoscaler#8494)."""
    number = revision_of_current(observed)
    annotations = {names.REVISION_ANNOTATION: str(number), names.CAPI_REVISION_ANNOTATION: str(number)}
    if state is not None and state.revision and state.revision != number:
        before = annotations_of(state.body).get(names.REVISION_HISTORY_ANNOTATION, "")
        history = [part for part in before.split(",") if part] + [str(state.revision)]
        while len(",".join(history)) > MAX_HISTORY_TEXT:
            history.pop(0)
        annotations[names.REVISION_HISTORY_ANNOTATION] = ",".join(history)
    return annotations


def deployment_annotations(observed: Observed) -> dict[str, Any]:
    """The deployment shows the number of its current MachineSet."""
    number = str(revision_of_current(observed))
    return {names.REVISION_ANNOTATION: number, names.CAPI_REVISION_ANNOTATION: number}


def sets_to_forget(observed: Observed) -> list[Delete]:
    """Empty old MachineSets beyond the limit, lowest revision first."""
    idle = [state for state in old_sets(observed) if state.empty and not is_deleting(state.body)]
    idle.sort(key=lambda state: (state.revision, state.created, state.name))
    limit = observed.desired.history_limit
    return [
        Delete(state.ref, f"MachineSet {state.name} (revision {state.revision}) is beyond revisionHistoryLimit {limit}")
        for state in idle[: max(len(idle) - limit, 0)]
    ]


def is_collision(observed: Observed) -> bool:
    """The derived name belongs to something else for good: another owner, or another template."""
    found = observed.namesake
    if found is None:
        return False
    if controller_uid(found) != uid_of(observed.body):
        return True
    template = spec_of(found).get("template") or {}
    return not is_deleting(found) and rollout_part(template) != rollout_part(observed.desired.template)


def first_size(observed: Observed) -> int:
    """Replicas that the strategy allows at once."""
    desired = observed.desired
    total = sum(state.total for state in observed.sets)
    if desired.strategy == StrategyType.RECREATE:
        left = total + sum(len(state.members.deleting) for state in observed.sets)
        return 0 if left else desired.replicas
    if desired.strategy == StrategyType.ON_DELETE:
        return max(desired.replicas - total, 0)
    if total and observed.allowed.closed:
        return 0
    goal = max(desired.replicas - min(desired.partition, sum(state.replicas for state in observed.sets)), 0)
    return max(min(desired.limits.max_total - total, goal), 0)


def new_set(observed: Observed) -> Create:
    """The MachineSet of the template in force, with all that the Cluster Autoscaler looks for."""
    desired, deployment = observed.desired, observed.body
    hash_ = hash_for_new(deployment, desired)
    name = machine_set_name(observed.ref.key.name, hash_)
    annotations = {
        **inherited_annotations(deployment),
        **revision_annotations(observed, None),
        **scale_annotations(desired.replicas, desired.limits.max_total),
    }
    body = _body(observed, name, template_for(observed, hash_), annotations)
    body["spec"]["replicas"] = first_size(observed)
    return Create(MACHINE_SET, body, f"MachineDeployment {observed.ref.key.name} has a template without a MachineSet")


def history_set(observed: Observed, holder: SetState) -> Create:
    """An empty MachineSet that keeps the template of ``holder``, which is about to get another one."""
    template = spec_of(holder.body).get("template") or {}
    hash_ = observed.history_name.rpartition("-")[2]
    left_out = (names.DISABLE_CREATE_ANNOTATION, *scale_annotations(0, 0))
    annotations = {key: value for key, value in annotations_of(holder.body).items() if key not in left_out}
    body = _body(observed, observed.history_name, with_hash(template, hash_), annotations)
    return Create(MACHINE_SET, body, f"keep the template of MachineSet {holder.name} (revision {holder.revision})")


def _body(observed: Observed, name: str, template: dict[str, Any], annotations: dict[str, str]) -> dict[str, Any]:
    desired, deployment = observed.desired, observed.body
    labels = template["metadata"]["labels"]
    selector = deployment["spec"]["selector"]
    return {
        "apiVersion": MACHINE_SET.api_version,
        "kind": MACHINE_SET.name,
        "metadata": {
            "name": name,
            "namespace": observed.ref.key.namespace,
            "labels": {**labels, **inherited_labels(deployment)},
            "annotations": annotations,
            "ownerReferences": [reference_to(MACHINE_DEPLOYMENT, deployment)],
        },
        "spec": {
            "replicas": 0,
            "minReadySeconds": int(desired.min_ready.total_seconds()),
            "deletePolicy": desired.policy,
            "selector": {
                **selector,
                "matchLabels": {
                    **(selector.get("matchLabels") or {}),
                    names.TEMPLATE_HASH_LABEL: labels[names.TEMPLATE_HASH_LABEL],
                },
            },
            "template": template,
            **domains_for(observed, template),
        },
    }


def domains_for(observed: Observed, template: Mapping[str, Any]) -> dict[str, Any]:
    """``failureDomains`` of a MachineSet; none where an earlier template names one, as they exclude each other."""
    named = observed.desired.failure_domains
    pinned = spec_of(template).get("failureDomain")
    return {} if named is None or pinned else {"failureDomains": list(named)}


def template_for(observed: Observed, hash_: str) -> dict[str, Any]:
    """The template in force with the hash among its labels."""
    return with_hash(observed.desired.template, hash_)


def with_hash(template: Mapping[str, Any], hash_: str) -> dict[str, Any]:
    metadata = dict(template.get("metadata") or {})
    metadata["labels"] = {**(metadata.get("labels") or {}), names.TEMPLATE_HASH_LABEL: hash_}
    return {**template, "metadata": metadata}


def inherited_labels(deployment: Obj) -> dict[str, str]:
    """By which people and the Cluster Autoscaler find the MachineSets of a deployment and a cluster."""
    name = label_value(deployment["metadata"]["name"])
    found = {
        names.DEPLOYMENT_NAME_LABEL: name,
        names.CAPI_DEPLOYMENT_NAME_LABEL: name,
        names.CLUSTER_NAME_LABEL: cluster_name_of(deployment),
    }
    return {key: value for key, value in found.items() if value}


def inherited_annotations(deployment: Obj) -> dict[str, str]:
    """Annotations that a MachineSet takes over; neither bookkeeping nor the request to be left alone, nor size bounds.

    A MachineSet of a deployment is no node group of its own, so the autoscaler's bounds stay behind.
    """
    left_out = names.NOT_COPIED_ANNOTATIONS.union(names.PAUSED_ANNOTATIONS, *names.AUTOSCALER_BOUNDS)
    return {key: value for key, value in annotations_of(deployment).items() if key not in left_out}
