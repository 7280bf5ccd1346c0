"""A rollout that changes Machines instead of replacing them: the biggest MachineSet gets the new template.

The MachineSet then hands it to its Machines, as many at once as ``spec.inPlaceUpdate`` allows, and their
provider changes the hosts. No Machine moves from one set to another, so no size changes but for the surge. What the set
was before is kept as an empty MachineSet, which is made first: the history is complete at any time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from api import names
from api.names import InPlace
from controllers.kernel.actions import Create, Patch
from controllers.kernel.refs import Obj, labels_of, resource_version_of, spec_of
from controllers.kernel.template import RESTARTS, difference, rollout_part
from controllers.kernel.wording import counted
from controllers.machinedeployment.creation import history_set, with_hash
from controllers.machinedeployment.observe import Observed, SetState, biggest
from controllers.machinedeployment.rolling_update import taken_back
from controllers.machinedeployment.targets import Targets


def turn(observed: Observed, now: SetState | None) -> Create | Patch | None:
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
    return _become(holder, observed.desired.template, budget(observed), why)


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


def sizes(observed: Observed, now: SetState, old: Sequence[SetState]) -> Targets | None:
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


def budget(observed: Observed) -> dict[str, Any]:
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
    return have.get("maxUpdating") == 0 and budget(observed).get("maxUpdating") != 0


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
