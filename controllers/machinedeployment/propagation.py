"""One patch for each MachineSet: its size, and what of the deployment reaches it without a rollout.

The current MachineSet gets everything of the template that flows in place, and passes it on to its Machines. Old ones
only get what concerns how they go: ``minReadySeconds``, ``deletePolicy``, ``failureDomains`` and timeouts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api import names
from api.declared import MACHINE_SPEC
from api.names import InPlace, StrategyType
from controllers.kernel.actions import Patch
from controllers.kernel.conditions import merge_patch
from controllers.kernel.ownership import reference_to, references_with
from controllers.kernel.refs import (
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    Obj,
    annotations_of,
    is_deleting,
    labels_of,
    ref_of,
    resource_version_of,
    spec_of,
)
from controllers.kernel.template import difference
from controllers.machinedeployment import in_place as in_place_update
from controllers.machinedeployment.creation import domains_for, inherited_annotations, inherited_labels, template_for
from controllers.machinedeployment.observe import Observed, SetState
from controllers.machinedeployment.proportional_scale import scale_annotations
from controllers.machinedeployment.revisions import revision_annotations
from controllers.machinedeployment.targets import Targets

BY_ON_DELETE = "OnDelete"
"""Value that tells our own mark on old MachineSets from one that a person set: only ours is taken back."""


def set_patches(observed: Observed, now: SetState | None, targets: Targets) -> list[Patch]:
    """Guarded by the version on which each was decided."""
    in_place = observed.desired.in_place != InPlace.NEVER
    patches = []
    for state in observed.sets:
        if is_deleting(state.body) or not state.readable:
            continue
        is_current = now is not None and state.uid == now.uid
        patch = _patch(observed, state, targets.of(state), is_current)
        budget = in_place_update.budget(observed) if in_place and is_current else None
        have = spec_of(state.body).get("inPlaceUpdate")
        if budget != have:
            change = difference(have, budget) if isinstance(have, Mapping) and budget is not None else budget
            patch.setdefault("spec", {})["inPlaceUpdate"] = change
        if patch:
            why = _why(observed, state, targets.of(state))
            patches.append(Patch(state.ref, patch, why, resource_version=resource_version_of(state.body)))
    return patches


def adoptions(observed: Observed) -> list[Patch]:
    """Take over MachineSets that match the selector and that nobody controls (left by an orphaning delete)."""
    reference = reference_to(MACHINE_DEPLOYMENT, observed.body)
    return [
        Patch(
            ref_of(MACHINE_SET, body),
            {"metadata": {"ownerReferences": references_with(body, reference)}},
            why=f"MachineSet {body['metadata']['name']} matches the selector and has no controller",
            resource_version=resource_version_of(body),
        )
        for body in observed.orphans
    ]


def _patch(observed: Observed, state: SetState, replicas: int, is_current: bool) -> dict[str, Any]:
    desired, spec = observed.desired, spec_of(state.body)
    want: dict[str, Any] = {"minReadySeconds": int(desired.min_ready.total_seconds()), "deletePolicy": desired.policy}
    have = {"minReadySeconds": spec.get("minReadySeconds") or 0, "deletePolicy": spec.get("deletePolicy") or "Random"}
    template = spec.get("template") or {}
    have["failureDomains"] = spec.get("failureDomains")
    want |= {"failureDomains": None, **domains_for(observed, template)}
    spec_patch = {key: value for key, value in merge_patch(have, want).items() if value != have[key]}
    if replicas != state.replicas:
        spec_patch["replicas"] = replicas
    template_patch = (
        _current_template(observed, state, template) if is_current else _timeouts(desired.template, template)
    )
    if template_patch:
        spec_patch["template"] = template_patch
    annotations = _annotations(observed, state, is_current, scaled=replicas != state.replicas)
    metadata = {
        "labels": merge_patch(labels_of(state.body), inherited_labels(observed.body)),
        "annotations": merge_patch(annotations_of(state.body), annotations),
    }
    metadata = {part: values for part, values in metadata.items() if values}
    return {part: values for part, values in (("metadata", metadata), ("spec", spec_patch)) if values}


def _annotations(observed: Observed, state: SetState, is_current: bool, *, scaled: bool) -> dict[str, Any]:
    desired = observed.desired
    want: dict[str, Any] = {}
    if is_current:
        want.update(inherited_annotations(observed.body))
        want.update(revision_annotations(observed, state))
    if scaled or state.replicas > 0:
        want.update(scale_annotations(desired.replicas, desired.limits.max_total))
    if desired.strategy == StrategyType.ON_DELETE and not is_current and not desired.paused:
        want[names.DISABLE_CREATE_ANNOTATION] = BY_ON_DELETE
    elif annotations_of(state.body).get(names.DISABLE_CREATE_ANNOTATION) == BY_ON_DELETE:
        want[names.DISABLE_CREATE_ANNOTATION] = None
    return want


def _current_template(observed: Observed, state: SetState, template: Obj) -> dict[str, Any]:
    """What flows in place, made equal to the deployment's template; the rest is equal already."""
    hash_ = labels_of({"metadata": template.get("metadata") or {}}).get(names.TEMPLATE_HASH_LABEL)
    want = template_for(observed, hash_ or labels_of(state.body).get(names.TEMPLATE_HASH_LABEL, ""))
    patch = {}
    metadata = difference(template.get("metadata") or {}, want["metadata"])
    if metadata:
        patch["metadata"] = metadata
    have, wanted = spec_of(template), spec_of(want)
    spec = difference(
        {key: have[key] for key in MACHINE_SPEC.in_place if have.get(key) not in (None, [], {})},
        {key: wanted[key] for key in MACHINE_SPEC.in_place if wanted.get(key) not in (None, [], {})},
    )
    if spec:
        patch["spec"] = spec
    return patch


def _timeouts(wanted: Mapping[str, Any], template: Obj) -> dict[str, Any]:
    have, want = spec_of(template), spec_of(wanted)
    spec = difference(
        {key: have[key] for key in MACHINE_SPEC.timeouts if have.get(key) is not None},
        {key: want[key] for key in MACHINE_SPEC.timeouts if want.get(key) is not None},
    )
    return {"spec": spec} if spec else {}


def _why(observed: Observed, state: SetState, replicas: int) -> str:
    if replicas == state.replicas:
        return f"MachineSet {state.name} follows MachineDeployment {observed.ref.key.name} without a rollout"
    direction = "up" if replicas > state.replicas else "down"
    return f"scale MachineSet {state.name} {direction} from {state.replicas} to {replicas}"
