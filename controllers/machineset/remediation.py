"""Unhealthy Machines that a health check asks to have replaced: which are deleted now, and who takes their place.

The check decides about whom and how many; the set deletes and makes new ones as it always does. What it adds is memory:
``status.remediated`` names those that are deleted and not yet made again, and each Machine made instead says whose
place it took and when that place was replaced before, so that the check can see when replacing does not help.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from api import names
from api.conditions import MachineCondition, Reason, SetCondition
from api.names import StrategyType
from controllers.kernel.conditions import Condition, counted, find
from controllers.kernel.machine_facts import MachineFacts, protection_sentence
from controllers.kernel.refs import Obj, annotations_of, is_deleting, spec_of
from controllers.kernel.remediation import RemediationData, read_remediation_data, remediation_data_of
from controllers.machineset import creation
from controllers.machineset.observe import Observed

MOST_REMEDIATED = 1000
"""Places that are remembered at a time; beyond them the next deletions wait."""


RECOVERY = timedelta(seconds=30)
"""For so long a Machine that was selected for deletion and has just become Ready stays: its health check may take the
selection back."""
_REFUTED = frozenset({Reason.NODE_STARTUP_TIMEOUT, Reason.NODE_MISSING})
"""What a health check said that can't be so any more of a Machine that is Ready, however long ago it became so."""


@dataclass(frozen=True, slots=True)
class Remediation:
    """``victims``: selected Machines to delete now. ``places``: all that are still to be taken, these included.

    ``deferred``: why selected Machines are not deleted now, "" if none is held back; ``look_at``: until when, if only
    time holds them back.
    """

    victims: tuple[MachineFacts, ...] = ()
    places: tuple[RemediationData, ...] = ()
    deferred: str = ""
    look_at: datetime | None = None


NO_REMEDIATION = Remediation()


def remediation(observed: Observed) -> Remediation:
    open_places = _open_places(observed)
    unmatched = {machine.key for machine in observed.unmatched}
    all_selected_for_deletion = [
        m for m in observed.members.active if m.selected_for_deletion and m.key not in unmatched
    ]
    if not all_selected_for_deletion:
        return Remediation(places=open_places)
    protected = [m for m in all_selected_for_deletion if m.protected]
    if len(protected) == len(all_selected_for_deletion):
        return Remediation(places=open_places, deferred=protection_sentence(protected))
    judged = [m for m in all_selected_for_deletion if not (m.protected or _is_refuted(m))]
    selected_for_deletion = [m for m in judged if _recovery_ends(m) <= observed.now]
    if not selected_for_deletion:
        unhealthy = counted(len(all_selected_for_deletion), "unhealthy Machine")
        message = f"{unhealthy} became ready, its health check has to look again"
        return Remediation((), open_places, message, min(map(_recovery_ends, judged), default=None))
    why = _deferred(observed)
    if why:
        return Remediation(
            places=open_places, deferred=f"{counted(len(selected_for_deletion), 'unhealthy Machine')} kept: {why}"
        )
    newest_first = sorted(selected_for_deletion, key=lambda machine: (-machine.created.timestamp(), machine.key.name))
    victims = tuple(newest_first[: max(MOST_REMEDIATED - len(open_places), 0)])
    left = tuple(remediation_data_of(machine.body).replaced(machine.key.name, observed.now) for machine in victims)
    return Remediation(victims, (*open_places, *left))


def places_for(places: Iterable[RemediationData], ordinals: Iterable[int]) -> dict[int, RemediationData]:
    """Which Machine takes which ordinal; called again after a crash it gives the same Machines the same ones."""
    return dict(zip(sorted(ordinals), places, strict=False))


def to_status(places: Iterable[RemediationData]) -> list[dict[str, Any]] | None:
    return [place.to_status() for place in places] or None


def condition(observed: Observed, found: Remediation) -> list[Condition]:
    """Only shown once there was reason to."""
    type_ = SetCondition.REMEDIATING
    if found.deferred:
        return [Condition(type_, "True", Reason.REMEDIATION_DEFERRED, found.deferred)]
    going = sum(machine.selected_for_deletion for machine in (*observed.members.leaving, *observed.members.deleting))
    moving = max(len(found.places), going + len(found.victims))
    if moving:
        message = counted(moving, "unhealthy Machine is being replaced", "unhealthy Machines are being replaced")
        return [Condition(type_, "True", Reason.REMEDIATING, message)]
    if find(observed.status.get("conditions"), type_):
        return [Condition(type_, "False", Reason.NOT_REMEDIATING)]
    return []


def _is_refuted(machine: MachineFacts) -> bool:
    """It is Ready, and selected for deletion because it had no Node: its health check lags, and has to look first."""
    conditions = (machine.body.get("status") or {}).get("conditions")
    reported = find(conditions, MachineCondition.HEALTH_CHECK_SUCCEEDED)
    return machine.ready and reported is not None and reported.get("reason") in _REFUTED


def _recovery_ends(machine: MachineFacts) -> datetime:
    """A Machine that became Ready after it was selected may be well: the health check has so long to say so."""
    since = machine.ready_since
    return since + RECOVERY if machine.ready and since is not None else machine.created


def _open_places(observed: Observed) -> tuple[RemediationData, ...]:
    """Places that no Machine has taken; given up when the set has all it needs (it was scaled down meanwhile)."""
    listed = observed.status.get("remediated")
    places = [read_remediation_data(entry) for entry in (listed if isinstance(listed, list) else ())]
    members = observed.members
    taken = {
        remediation_data_of(machine.body).machine for machine in (*members.active, *members.leaving, *members.deleting)
    }
    left = tuple(place for place in places if place.machine and place.machine not in taken)
    return left if observed.desired.replicas > len(members.active) else ()


def _deferred(observed: Observed) -> str:
    """Why deleting would not help now: nothing would be made instead, or a rollout replaces it anyway."""
    if observed.cluster_deleting or is_deleting(observed.body):
        return "everything of it is being deleted"
    held = creation.hold(observed)
    if held is not None and held.reason != Reason.CREATION_DISABLED:
        return held.why
    return _rolled_away(observed.body, observed.deployment)


def _rolled_away(body: Obj, deployment: Obj | None) -> str:
    """An old revision's unhealthy Machines are the first that a rollout replaces, by the new template (as in CAPI)."""
    if deployment is None:
        return ""
    spec: Mapping[str, Any] = spec_of(deployment)
    strategy = (spec.get("strategy") or {}).get("type") or StrategyType.ROLLING_UPDATE
    if spec.get("paused") or strategy == StrategyType.ON_DELETE:
        return ""
    mine, current = (annotations_of(obj).get(names.REVISION_ANNOTATION, "") for obj in (body, deployment))
    if not mine or not current or mine == current:
        return ""
    return f"revision {current} is being rolled out, which replaces those of revision {mine}"
