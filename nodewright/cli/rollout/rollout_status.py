"""How far a rollout is, in kubectl's words and with its meaning: done, on its way, or failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from api.conditions import DeploymentCondition, Reason
from api.intorstring import IntOrStringError, resolve
from api.names import REVISION_ANNOTATION, StrategyType
from controllers.kernel.conditions import find
from controllers.kernel.refs import Obj, annotations_of
from nodewright.cli.rollout.naming import KIND

_FAILED = frozenset((Reason.PROGRESS_DEADLINE_EXCEEDED, Reason.ROLLED_BACK, Reason.INVALID_CONFIGURATION))


@dataclass(frozen=True, slots=True)
class RolloutStatus:
    """``text`` is one line for people. ``going``: what Machines that are still being deleted wait for, "" without any.

    As in kubectl a rollout is done while old replicas terminate: they hold up no new one.
    """

    state: Literal["done", "on its way", "failed"]
    text: str
    going: str = ""


def rollout_status(body: Obj) -> RolloutStatus:
    """How the rollout of this MachineDeployment stands."""
    return replace(_state_of(body), going=_going(body.get("status") or {}))


def _going(status: Mapping[str, Any]) -> str:
    if not status.get("deletingReplicas"):
        return ""
    scaling_down = find(status.get("conditions"), DeploymentCondition.SCALING_DOWN) or {}
    return str(scaling_down.get("message") or f"{status['deletingReplicas']} Machines are being deleted")


def _state_of(body: Obj) -> RolloutStatus:
    spec, status = body["spec"], body.get("status") or {}
    name = body["metadata"]["name"]
    title = f'{KIND} "{name}"'
    if (status.get("observedGeneration") or 0) < (body["metadata"].get("generation") or 0):
        return RolloutStatus("on its way", f"Waiting for {title} spec update to be observed...")
    progressing = find(status.get("conditions"), DeploymentCondition.PROGRESSING) or {}
    if progressing.get("status") == "False" and progressing.get("reason") in _FAILED:
        return RolloutStatus("failed", f"{title} {_failure(progressing)}")
    wanted = 1 if spec.get("replicas") is None else int(spec["replicas"])
    return _counted(title, body, wanted)


def _failure(progressing: Mapping[str, Any]) -> str:
    reported = {
        Reason.PROGRESS_DEADLINE_EXCEEDED: "exceeded its progress deadline",
        Reason.ROLLED_BACK: "was rolled back",
    }.get(progressing["reason"], "can't be rolled out")
    return f"{reported}: {progressing.get('message') or ''}".rstrip(": ")


def _on_its_way(title: str, text: str) -> RolloutStatus:
    return RolloutStatus("on its way", f"Waiting for {title} rollout to finish: {text}")


def _counted(title: str, body: Obj, wanted: int) -> RolloutStatus:
    status = body.get("status") or {}
    total, updated, available = (
        int(status.get(key) or 0) for key in ("replicas", "updatedReplicas", "availableReplicas")
    )
    kept = min(_partition(body["spec"], wanted), max(total - updated, 0))
    if updated < wanted - kept:
        return _on_its_way(title, f"{updated} out of {wanted - kept} new replicas have been updated{_why(body)}...")
    if total - kept > updated or total > wanted:
        left = total - kept - min(updated, wanted)
        return _on_its_way(title, f"{left} old replicas are pending termination{_protected(body)}...")
    if available < wanted:
        return _on_its_way(title, f"{available} of {wanted} updated replicas are available{_why(body)}...")
    if not _settled(status):
        return _on_its_way(title, f"the last Machines are being updated{_why(body)}...")
    if kept:
        return RolloutStatus(
            "done", f"partitioned roll out of {title} complete: {updated} new replicas, {kept} stay old"
        )
    return RolloutStatus("done", f"{title} successfully rolled out")


def _settled(status: Mapping[str, Any]) -> bool:
    """Updates in place don't show in the counts until their hosts follow."""
    rolling = find(status.get("conditions"), DeploymentCondition.PROGRESSING) or {}
    return rolling.get("reason") != Reason.ROLLING_OUT


def _partition(spec: Mapping[str, Any], wanted: int) -> int:
    rolling = (spec.get("strategy") or {}).get("rollingUpdate") or {}
    try:
        return resolve(rolling.get("partition") or 0, wanted, "up")
    except IntOrStringError:
        return 0


def _why(body: Obj) -> str:
    """What holds it up, in a few words."""
    if (body["spec"] or {}).get("paused"):
        return " (paused)"
    if (body["spec"].get("strategy") or {}).get("type") == StrategyType.ON_DELETE:
        return " (OnDelete: old ones wait until somebody deletes them)"
    if protected := _protected(body):
        return protected
    conditions = (body.get("status") or {}).get("conditions")
    for type_ in (
        DeploymentCondition.DISRUPTION_ALLOWED,
        DeploymentCondition.MACHINES_UP_TO_DATE,
        DeploymentCondition.MACHINES_READY,
    ):
        found = find(conditions, type_)
        if found and found.get("status") == "False" and found.get("message"):
            return f" ({found['message']})"
    return ""


def _protected(body: Obj) -> str:
    """Which Machines it waits for that only a person takes away; "" if there are none."""
    conditions = (body.get("status") or {}).get("conditions")
    for type_ in (DeploymentCondition.ROLLING_OUT, DeploymentCondition.SCALING_DOWN):
        found = find(conditions, type_)
        if found and found.get("reason") == Reason.MACHINES_PROTECTED:
            return f" ({found.get('message') or ''})"
    return ""


def revision_of(body: Obj) -> int:
    text = annotations_of(body).get(REVISION_ANNOTATION, "")
    return int(text) if text.isdigit() else 0
