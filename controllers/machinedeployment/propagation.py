"""What of a MachineDeployment reaches its MachineSets: sizes, fields that flow, and a template changed in place.

A rollout that changes Machines instead of replacing them: the biggest MachineSet gets the new template.

The MachineSet then hands it to its Machines, as many at once as ``spec.inPlaceUpdate`` allows, and their
provider changes the hosts. No Machine moves from one set to another, so no size changes but for the surge. What the set
was before is kept as an empty MachineSet, which is made first: the history is complete at any time.

One patch for each MachineSet: its size, and what of the deployment reaches it without a rollout.

The current MachineSet gets everything of the template that flows in place, and passes it on to its Machines. Old ones
only get what concerns how they go: ``minReadySeconds``, ``deletePolicy``, ``failureDomains`` and timeouts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from api import names
from api.declared import MACHINE_SPEC
from api.names import InPlace, StrategyType
from controllers.kernel.actions import Create, Patch
from controllers.kernel.conditions import counted, merge_patch
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
from controllers.kernel.template import RESTARTS, difference, rollout_part
from controllers.machinedeployment.creation import (
    domains_for,
    history_set,
    inherited_annotations,
    inherited_labels,
    revision_annotations,
    template_for,
    with_hash,
)
from controllers.machinedeployment.observe import Observed, SetState, biggest
from controllers.machinedeployment.rolling_update import Targets, scale_annotations, taken_back


def in_place_turn(observed: Observed, now: SetState | None) -> Create | Patch | None:
    """The next step by which the biggest MachineSet gets the template in force; None if it has it, or may not get it.

    Where Machines of that template exist already, the rollout began by replacing and goes on so.
    """
    if observed.desired.in_place == InPlace.NEVER:
        return _turn_back(observed, now)
    holder = biggest(observed.sets)
    if holder is None or holder.current or (now is not None and now.total) or _is_restart(observed, holder):
        return None
    if not _kept(observed, holder):
        return history_set(observed, holder) if observed.history_name else None
    why = f"MachineSet {holder.name} gets the new template; its Machines are updated in place"
    return _become(holder, observed.desired.template, in_place_budget(observed), why)


def _turn_back(observed: Observed, now: SetState | None) -> Patch | None:
    """In place is not wanted any more, and some Machines don't have the template: the set is an old one again.

    Then all of it is replaced, those that were updated already too: they are Machines of that set.
    """
    if now is None or not now.outdated:
        return None
    before = [state for state in observed.sets if state.uid != now.uid and state.readable and not state.current]
    if not before:
        return None
    last = max(before, key=lambda state: (state.revision, state.created))
    why = f"MachineSet {now.name} has the template of before again: its Machines are to be replaced"
    return _become(now, _template(last.body), None, why)


def _become(state: SetState, template: Mapping[str, Any], in_place: dict[str, Any] | None, why: str) -> Patch:
    """Give the MachineSet another template; its own hash label stays, by which it selects its Machines."""
    have = _template(state.body)
    hash_ = labels_of({"metadata": have.get("metadata") or {}}).get(names.TEMPLATE_HASH_LABEL, "")
    spec = {"template": difference(have, with_hash(template, hash_)), "inPlaceUpdate": in_place}
    return Patch(state.ref, {"spec": spec}, why, resource_version=resource_version_of(state.body))


def in_place_sizes(observed: Observed, now: SetState, old: Sequence[SetState]) -> Targets | None:
    """The size of the MachineSet while it updates in place; None if old MachineSets still have Machines to replace.

    Without ``maxUnavailable`` the surge takes the place of Machines that are being updated.
    """
    desired = observed.desired
    left = sum(state.total for state in old)
    if left and desired.in_place == InPlace.REQUIRE:
        return Targets(notes=(f"{counted(left, 'Machine')} of other MachineSets would have to be replaced",))
    if left:
        return None
    waiting = max(len(now.outdated) - desired.partition, 0)
    moves = (waiting or now.updating) and not desired.limits.unavailable and not observed.allowed.closed
    size = desired.limits.max_total if moves and desired.replicas else desired.replicas
    notes = [counted(waiting, "Machine waits", "Machines wait") + " to be updated in place"] if waiting else []
    possible = taken_back(observed, now, size)
    if possible > size:
        least = desired.limits.min_available
        notes.append(f"{counted(possible - size, 'Machine')} too many for now: {least} available ones must stay")
    return Targets({now.uid: possible}, tuple(notes))


def in_place_budget(observed: Observed) -> dict[str, Any]:
    """``spec.inPlaceUpdate`` of the current MachineSet."""
    limit = 0 if observed.desired.paused else observed.allowed.limit
    return {
        "policy": observed.desired.in_place,
        "minAvailable": observed.desired.limits.min_available,
        "partition": observed.desired.partition,
        **({"maxUpdating": limit} if limit is not None else {}),
    }


def is_let_on(observed: Observed, now: SetState) -> bool:
    """Whether Machines may be updated from now on that might not before."""
    have = spec_of(now.body).get("inPlaceUpdate")
    if observed.desired.in_place == InPlace.NEVER or not isinstance(have, Mapping):
        return False
    return have.get("maxUpdating") == 0 and in_place_budget(observed).get("maxUpdating") != 0


def would_replace(observed: Observed, now: SetState | None, old: Sequence[SetState]) -> bool:
    """Whether only replacing Machines could finish the rollout, and that is forbidden."""
    return observed.desired.in_place == InPlace.REQUIRE and now is not None and any(state.total for state in old)


def _is_restart(observed: Observed, holder: SetState) -> bool:
    """A restart asks for other hosts, whatever else has changed."""
    asked, have = rollout_part(observed.desired.template), rollout_part(_template(holder.body))
    return any(asked.get(name) != have.get(name) for name in RESTARTS)


def _kept(observed: Observed, holder: SetState) -> bool:
    """Another MachineSet has its template, to return to."""
    want = rollout_part(_template(holder.body))
    others = (state for state in observed.sets if state.uid != holder.uid and state.readable)
    return any(rollout_part(_template(state.body)) == want for state in others)


def _template(body: Obj) -> dict[str, Any]:
    return dict(spec_of(body).get("template") or {})


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
        budget = in_place_budget(observed) if in_place and is_current else None
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
