"""Observed and Decision → the status: counts, etcd's members, and conditions that name what does not work."""

from __future__ import annotations

from typing import Any

from api.conditions import ControlPlaneCondition, Reason
from controllers.controlplane import saving, spreading
from controllers.controlplane.making import selector
from controllers.controlplane.observe import Observed
from controllers.controlplane.quorum import votes_of
from controllers.controlplane.state import Decision, Machine, Wait
from controllers.kernel.conditions import Condition, Moment, counted, find, merge_in_place, merge_patch
from controllers.kernel.etcd import EtcdMember, EtcdMembers, EtcdUnread
from controllers.kernel.refs import generation_of, is_deleting
from controllers.kernel.version import parse

OWNED = frozenset(str(type_) for type_ in ControlPlaneCondition)
_MOST = 5
_MOST_MEMBERS = 20
_MOST_TEXT = 1024


def patch(
    observed: Observed,
    decision: Decision | None,
    extra: dict[str, Any] | None = None,
    held: saving.Held | None = None,
) -> dict[str, Any]:
    """The smallest patch of the status; {} if it says all already. ``held``: a step waits for a snapshot."""
    if observed.hold:
        return _held(observed)
    machines = [machine for machine in observed.state.machines if not machine.deleting]
    step = decision.step if decision is not None else None
    new: dict[str, Any] = {
        "observedGeneration": generation_of(observed.body),
        "replicas": len(machines),
        "readyReplicas": sum(works(observed, machine) for machine in machines),
        "updatedReplicas": sum(machine.up_to_date for machine in machines),
        "initialized": observed.state.initialized,
        "labelSelector": selector(observed),
        "conditions": merge_in_place(
            observed.status.get("conditions"),
            conditions(observed, decision, held),
            OWNED,
            Moment(generation_of(observed.body), observed.now),
        ),
        **_version(machines),
        **_etcd(observed),
        **saving.record(observed),
        **_resting(observed),
        **(extra or {}),
    }
    if step is not None:
        new["next"] = step.why[:_MOST_TEXT]
    return merge_patch(observed.status, new)


def _resting(observed: Observed) -> dict[str, Any]:
    kept = spreading.record(observed, None)
    return {"restingFailureDomains": kept} if kept or observed.resting else {}


def _held(observed: Observed) -> dict[str, Any]:
    """The spec can't be used: what was seen of Machines before stays."""
    moment = Moment(generation_of(observed.body), observed.now)
    reported = conditions(observed, None)
    new = {
        "observedGeneration": generation_of(observed.body),
        "conditions": merge_in_place(observed.status.get("conditions"), reported, (), moment),
    }
    return merge_patch(observed.status, new)


def works(observed: Observed, machine: Machine) -> bool:
    member = any(m.machine == machine.name and m.works and m.is_voter for m in observed.state.members)
    return machine.whole and member and not machine.goes


def conditions(observed: Observed, decision: Decision | None, held: saving.Held | None = None) -> list[Condition]:
    if observed.paused:
        return [Condition(ControlPlaneCondition.PAUSED, "True", Reason.PAUSED, observed.paused)]
    if observed.hold:
        condition = Condition(ControlPlaneCondition.READY, "False", Reason.INVALID_CONFIGURATION, observed.hold)
        return [condition]
    found = [_ready(observed), _etcd_healthy(observed), _initialized(observed), _up_to_date(observed, decision)]
    found += spreading.condition(observed)
    found += filter(None, (saving.condition(observed, held), _remediating(observed, decision)))
    if is_deleting(observed.body):
        left = counted(len(observed.machines), "Machine is", "Machines are")
        found.append(Condition(ControlPlaneCondition.DELETING, "True", Reason.DELETING, f"{left} left"))
    return found


def etcd_condition(observed: Observed) -> Condition:
    return _etcd_healthy(observed)


def _ready(observed: Observed) -> Condition:
    machines = [machine for machine in observed.state.machines if not machine.deleting]
    lame = [machine.name for machine in machines if not works(observed, machine)]
    type_, missing = ControlPlaneCondition.READY, observed.state.replicas - len(machines)
    if not lame and missing <= 0:
        return Condition(type_, "True", Reason.CONTROL_PLANE_READY)
    parts = [f"{_listed(lame)} {'does' if len(lame) == 1 else 'do'} not work"] if lame else []
    parts += [f"{counted(missing, 'Machine is', 'Machines are')} missing"] if missing > 0 else []
    return Condition(type_, "False", Reason.CONTROL_PLANE_NOT_READY, "; ".join(parts))


def _etcd_healthy(observed: Observed) -> Condition:
    type_, etcd = ControlPlaneCondition.ETCD_HEALTHY, observed.etcd
    if isinstance(etcd, EtcdUnread):
        return Condition(type_, "Unknown", Reason.ETCD_UNKNOWN, etcd.why)
    votes = votes_of(observed.state.members)
    reported = [f"{m.title}: {_wrong(m)}" for m in etcd.members if _wrong(m)][:_MOST]
    if not votes.have_quorum:
        return Condition(type_, "False", Reason.ETCD_QUORUM_LOST, "; ".join([str(votes), *reported]))
    if reported:
        return Condition(type_, "False", Reason.ETCD_DEGRADED, "; ".join([str(votes), *reported]))
    sizes = [member.db_size_bytes for member in etcd.members if member.db_size_bytes]
    size = f"; the largest database has at most {_rounded(max(sizes)) >> 20} MiB" if sizes else ""
    return Condition(type_, "True", Reason.ETCD_HEALTHY, f"{votes}{size}")


def _wrong(member: EtcdMember) -> str:
    if member.alarms:
        return f"alarm {', '.join(member.alarms)}"
    if not member.name:
        return "it was added and never started"
    if member.healthy is not True:
        return member.why or "it does not answer"
    return "it is still a learner" if member.learner else ""


def _initialized(observed: Observed) -> Condition:
    type_ = ControlPlaneCondition.INITIALIZED
    if observed.state.initialized:
        return Condition(type_, "True", Reason.INITIALIZED)
    return Condition(type_, "False", Reason.INITIALIZING, f"Machine {observed.first_name} is to initialize the cluster")


def _up_to_date(observed: Observed, decision: Decision | None) -> Condition:
    type_ = ControlPlaneCondition.MACHINES_UP_TO_DATE
    staying = [m for m in observed.state.machines if not m.deleting]
    old = [m.name for m in staying if not m.up_to_date]
    ending = [m for m in staying if m.up_to_date and m.expires]
    if not old and not ending:
        return Condition(type_, "True", Reason.UP_TO_DATE, observed.workers)
    parts = [f"{_listed(old)} of an earlier template"] if old else []
    parts += [f"the certificates of {_listed([m.name for m in ending])}: {ending[0].expires}"] if ending else []
    if decision is not None:
        parts += [decision.step.why, *decision.refusals]
    message = "; ".join(dict.fromkeys(filter(None, [*parts, observed.workers])))
    return Condition(type_, "False", Reason.NOT_UP_TO_DATE, message[:_MOST_TEXT])


def _remediating(observed: Observed, decision: Decision | None) -> Condition | None:
    type_ = ControlPlaneCondition.REMEDIATING
    bad = [machine.name for machine in observed.state.machines if machine.goes]
    if not bad:
        if find(observed.status.get("conditions"), type_):
            return Condition(type_, "False", Reason.NOT_REMEDIATING)
        return None
    reported = [f"{_listed(bad)} to be replaced"]
    if decision is not None:
        reported += [decision.step.why, *decision.refusals]
    waits = decision is not None and isinstance(decision.step, Wait)
    reason = Reason.REMEDIATION_DEFERRED if waits else Reason.REMEDIATING
    return Condition(type_, "True", reason, "; ".join(dict.fromkeys(reported))[:_MOST_TEXT])


def _version(machines: list[Machine]) -> dict[str, Any]:
    """The lowest version that a Node reports."""
    known = [(parsed, machine.version) for machine in machines if (parsed := parse(machine.version))]
    return {"version": min(known)[1]} if known else {}


def _etcd(observed: Observed) -> dict[str, Any]:
    """What was read last stays in the status while etcd can't be read: the condition says that it is old."""
    etcd = observed.etcd
    if not isinstance(etcd, EtcdMembers):
        return {}
    votes = votes_of(observed.state.members)
    sick = [m.title for m in etcd.members if _wrong(m)][:_MOST_MEMBERS]
    alarms = [f"{m.title}: {alarm}" for m in etcd.members for alarm in m.alarms][:_MOST_MEMBERS]
    sizes = [m.db_size_bytes for m in etcd.members if m.db_size_bytes is not None]
    reported: dict[str, Any] = {"members": len(etcd.members), "voters": votes.voters, "healthy": votes.healthy}
    reported |= {"unhealthy": sick or None, "alarms": alarms or None}
    if sizes:
        reported["dbSizeBytes"] = _rounded(max(sizes))
    if "etcd" not in observed.status:
        reported = {key: value for key, value in reported.items() if value is not None}
    return {"etcd": reported}


def _rounded(size: int) -> int:
    """To the next 16 MiB, so that a database that grows by bytes costs no writes."""
    grain = 16 * 1024 * 1024
    return -(-size // grain) * grain


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST
    shown = ", ".join(sorted(names)[:_MOST]) + (f" and {more} more" if more > 0 else "")
    return f"{'Machine' if len(names) == 1 else 'Machines'} {shown}"
