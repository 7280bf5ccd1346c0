"""Observed → Plan: the planner's one change as actions, so that a crash after any of them changes nothing.

A change is written into ``status.pending`` before it is made, guarded by the version of the ControlPlane that was seen:
a reconcile on an older view is refused. Until the change is seen, no other is begun.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from api import names
from api.conditions import ControlPlaneCondition, Reason
from controllers.controlplane import making, saving, spreading, status
from controllers.controlplane.holds import replaced_at
from controllers.controlplane.observe import Observed
from controllers.controlplane.planner import decide
from controllers.controlplane.renewal import is_finding_out, was_asked
from controllers.controlplane.state import (
    Decision,
    Init,
    Join,
    Phase,
    Release,
    Remove,
    RemoveMember,
    Step,
    UpgradeInPlace,
    Wait,
)
from controllers.controlplane.together import Turn
from controllers.kernel import plan as plans
from controllers.kernel.actions import Action, Delete, Event, Patch, RemoveEtcdMember
from controllers.kernel.conditions import find, format_time
from controllers.kernel.etcd import EtcdUnread
from controllers.kernel.names import machine_name
from controllers.kernel.plan import Blocked, Failed, Outcome, Plan, steps
from controllers.kernel.refs import CLUSTER, annotations_of, is_deleting, key_of, ref_of, resource_version_of

REQUEUE = 5.0
"""Seconds until etcd and the Machines are looked at again while something is under way."""
STEADY = 30.0
"""The same while all is as desired: etcd has no watch."""
MOST_TIMES = 20


def plan(observed: Observed) -> Plan:
    """Total: what can't be used becomes a condition."""
    if not observed.complete:
        return Plan(outcome=plans.Wait(1.0, "not everything is read yet"))
    if is_deleting(observed.body):
        return _delete(observed)
    if observed.paused:
        return Plan(_reported(observed, None), notes=(observed.paused,))
    if observed.hold:
        return Plan(_reported(observed, None), Failed(Reason.INVALID_CONFIGURATION, observed.hold))
    if names.CONTROL_PLANE_FINALIZER not in _finalizers(observed):
        return Plan(steps([_finalizer(observed)]), plans.Wait(0.0, "the finalizer comes first"))
    if (note := _note_of_cluster(observed)) is not None:
        return Plan(steps([note]), plans.Wait(0.0, "the Cluster is marked first"))
    if isinstance(observed.etcd, EtcdUnread) and observed.etcd.finding_out:
        return Plan(outcome=plans.Wait(1.0, "etcd is being read"))  # what was said before still holds
    if is_finding_out(observed.certificates) and any(map(was_asked, observed.machines)):
        return Plan(outcome=plans.Wait(1.0, "certificates are being read"))
    decision = decide(observed.state)
    unseen = _unseen(observed)
    if unseen is not None:
        return _repeat(observed, unseen, decision)
    if observed.addon is not None and isinstance(decision.step, Wait) and decision.step.settled:
        return _for_workers(observed, Turn(observed.addon.why, observed.addon))
    if observed.turn is not None and isinstance(decision.step, Wait) and decision.step.settled:
        return _for_workers(observed, observed.turn)
    return _carried_out(observed, decision)


def _for_workers(observed: Observed, turn: Turn) -> Plan:
    """The control plane is as desired: kube-proxy follows, and its workers if ``spec.upgrade`` says so."""
    written = _reported(observed, Decision(Wait(turn.why)))
    if turn.patch is None:
        return Plan(written, plans.Wait(REQUEUE, turn.why))
    event = Event(observed.ref, "Normal", str(Reason.CONTROL_PLANE_CHANGED), turn.why)
    return Plan((*written, *steps([turn.patch, event])), plans.Wait(REQUEUE, turn.why))


def _carried_out(observed: Observed, decision: Decision) -> Plan:
    held = saving.before(observed, decision.step)
    if held is not None:
        return _saving(observed, decision, held)
    change = _change(observed, decision.step)
    if isinstance(decision.step, Wait) and (move := spreading.move_of(observed)) is not None:
        resting = {"restingFailureDomains": spreading.record(observed, move)}
        change = _Change(tuple(spreading.actions(observed, move)), record=resting)
    written = _reported(observed, decision, change.record, guarded=change.guarded)
    return Plan(
        (*steps(_ledger(observed)), *written, *steps(change.before, change.actions, _events(observed, decision))),
        _outcome(decision),
        notes=decision.refusals,
    )


def _saving(observed: Observed, decision: Decision, held: saving.Held) -> Plan:
    """The step waits for its snapshot. What was decided before, and is not seen, stays written down."""
    waits = Decision(Wait(held.why), decision.refusals)
    actions: list[Action] = [held.action] if held.action is not None else []
    if saving.has_failed_anew(observed, held):
        actions.append(Event(observed.ref, "Warning", str(Reason.SNAPSHOT_FAILED), held.why))
    return Plan(
        (*steps(_ledger(observed)), *_reported(observed, waits, held=held), *steps(actions)),
        plans.Wait(REQUEUE, held.why),
        notes=decision.refusals,
    )


@dataclass(frozen=True, slots=True)
class _Change:
    """``record``: what the status says of it first; ``guarded``: only if the ControlPlane is as it was seen."""

    actions: tuple[Action, ...] = ()
    before: tuple[Action, ...] = ()
    record: dict[str, Any] | None = None
    guarded: bool = False


def _change(observed: Observed, step: Step) -> _Change:
    match step:
        case Init(why=why):
            return _Change((making.create(observed, observed.first_name, why, first=True),), (_locked(observed),))
        case Join(why=why):
            name = machine_name(observed.prefix, observed.next_ordinal)
            record = {"nextOrdinal": observed.next_ordinal + 1, "pending": {"operation": "Join", "machine": name}}
            return _Change((making.create(observed, name, why, first=False),), record=record, guarded=True)
        case Remove(machine=name, why=why):
            facts = observed.facts(name)
            if facts is None:
                return _Change()
            record = {"pending": {"operation": "Remove", "machine": name}, **_replaced(observed, name)}
            return _Change((Delete(facts.ref, why),), record=record, guarded=True)
        case RemoveMember(member=member, machine=name, why=why):
            noted = _noted(observed, name, member)  # once it is removed, its Machine is none that may yet join
            return _Change((_removal(observed, member, why),), noted, record=_replaced(observed, name) or None)
        case Release(machine=name, why=why):
            facts = observed.facts(name)
            return _Change((_release(observed, name, why),) if facts is not None else ())
        case UpgradeInPlace(machine=name, why=why):
            facts = observed.facts(name)
            if facts is None:
                return _Change()
            record = {"pending": {"operation": "Upgrade", "machine": name}}
            return _Change((making.update(observed, facts, why),), record=record, guarded=True)
        case _:
            return _Change()


# -- a change that was decided and is not seen yet


def _unseen(observed: Observed) -> str | None:
    """Name of the Machine whose change is not seen, None if there is no such change."""
    pending = observed.pending
    if pending is None:
        return None
    machine = next((m for m in observed.state.machines if m.name == pending.machine), None)
    match pending.operation:
        case "Join":
            seen = machine is not None
        case "Remove":
            seen = machine is None or machine.deleting
        case _:
            seen = machine is None or machine.renewed or machine.phase is not Phase.RUNNING or bool(machine.stays)
    return None if seen else pending.machine


def _repeat(observed: Observed, name: str, decision: Decision) -> Plan:
    """The same change once more, if it is still what is wanted. Else it is made sure that it did not happen: a patch
    that changes nothing is refused where the Machine was changed meanwhile."""
    assert observed.pending is not None
    facts, step = observed.facts(name), decision.step
    waits = plans.Wait(REQUEUE, f"the last change of Machine {name} is not seen yet")
    if observed.pending.operation == "Join":
        settled = isinstance(step, Wait) and not step.settled
        if settled:
            return Plan(_reported(observed, decision), waits)
        why = f"Machine {name} was decided on, and is not seen"
        return Plan(steps([making.create(observed, name, why, first=False)]), waits)
    if isinstance(step, RemoveMember | Release):
        return _carried_out(observed, decision)
    if facts is None or (isinstance(step, Remove | UpgradeInPlace) and step.machine == name):
        return _carried_out(observed, decision)
    if isinstance(step, Wait) and not step.settled:
        return Plan(_reported(observed, decision), waits)
    probe = Patch(facts.ref, {}, f"Machine {name} is as it was seen", resource_version=facts.resource_version)
    forget = _status_patch(observed, {"pending": None}, "the change that was decided last did not happen")
    return Plan(steps([probe], [forget]), plans.Wait(0.0, "then it is decided anew"))


# -- single writes


def _ledger(observed: Observed) -> list[Action]:
    """Which member is whose, once it has a vote: a Machine whose member is gone differs from one that may yet join."""
    found: list[Action] = []
    for member in observed.state.members:
        if member.is_voter and member.name:
            found += _noted(observed, member.machine, member.id)
    return found


def _noted(observed: Observed, machine: str, member: int) -> tuple[Action, ...]:
    facts, text = observed.facts(machine), f"{member:x}"
    if facts is None or annotations_of(facts.body).get(names.CONTROL_PLANE_MEMBER) == text:
        return ()
    patch = {"metadata": {"annotations": {names.CONTROL_PLANE_MEMBER: text}}}
    return (Patch(facts.ref, patch, f"Machine {machine} has etcd member {text}"),)


def _locked(observed: Observed) -> Patch:
    """The lock names one Machine for ever. Each attempt changes the Cluster, so that none is made on an older view."""
    assert observed.cluster is not None
    text = f"{observed.first_name}/{observed.lock[1] + 1}"
    patch = {"metadata": {"annotations": {names.CONTROL_PLANE_INIT_LOCK: text}}}
    why = f"only Machine {observed.first_name} may initialize Cluster {key_of(observed.cluster).name}"
    return Patch(ref_of(CLUSTER, observed.cluster), patch, why, resource_version=resource_version_of(observed.cluster))


def _note_of_cluster(observed: Observed) -> Patch | None:
    """The Cluster says that it was initialized, whatever becomes of the ControlPlane."""
    cluster = observed.cluster
    if cluster is None or not observed.state.initialized or names.CONTROL_PLANE_INITIALIZED in annotations_of(cluster):
        return None
    patch = {"metadata": {"annotations": {names.CONTROL_PLANE_INITIALIZED: format_time(observed.now)}}}
    return Patch(ref_of(CLUSTER, cluster), patch, f"Cluster {key_of(cluster).name} was initialized")


def _removal(observed: Observed, member: int, why: str) -> RemoveEtcdMember:
    members = observed.state.members
    return RemoveEtcdMember(
        cluster=key_of(observed.cluster or {"metadata": {"name": observed.spec.cluster_name or ""}}),
        member=member,
        members=frozenset(each.id for each in members),
        healthy=frozenset(each.id for each in members if each.works and each.is_voter and each.id != member),
        why=why,
    )


def _release(observed: Observed, name: str, why: str) -> Patch:
    facts = observed.facts(name)
    assert facts is not None
    return Patch(facts.ref, {"metadata": {"annotations": {names.CONTROL_PLANE_HOOK: None}}}, why)


def _replaced(observed: Observed, name: str) -> dict[str, Any]:
    """Remembers a Machine that goes since it does not work, once."""
    machine = next((m for m in observed.state.machines if m.name == name), None)
    known = (observed.status.get("replaced") or {}).get("machine")
    if machine is None or not machine.goes or machine.deleting or known == name:
        return {}
    before = replaced_at(observed.status, now=observed.now, within=observed.spec.remediation.min_healthy_period)
    times = [*before, observed.now][-MOST_TIMES:]
    return {"replaced": {"machine": name, "times": [format_time(moment) for moment in times]}}


def _finalizers(observed: Observed) -> list[str]:
    return list(observed.body["metadata"].get("finalizers") or ())


def _finalizer(observed: Observed) -> Patch:
    patch = {"metadata": {"finalizers": [*_finalizers(observed), names.CONTROL_PLANE_FINALIZER]}}
    why = f"ControlPlane {key_of(observed.body).name} goes after its Machines"
    return Patch(observed.ref, patch, why, resource_version=resource_version_of(observed.body))


def _delete(observed: Observed) -> Plan:
    """All Machines go. Nobody is left to keep a quorum for, so no member is removed before its host goes."""
    if names.CONTROL_PLANE_FINALIZER not in _finalizers(observed):
        return plans.NOTHING
    if not observed.machines:
        kept = [name for name in _finalizers(observed) if name != names.CONTROL_PLANE_FINALIZER]
        patch = {"metadata": {"finalizers": kept or None}}
        why = f"ControlPlane {key_of(observed.body).name} has no Machine left"
        return Plan(steps([Patch(observed.ref, patch, why, resource_version=resource_version_of(observed.body))]))
    why = f"ControlPlane {key_of(observed.body).name} is being deleted"
    held = [m for m in observed.machines if names.CONTROL_PLANE_HOOK in annotations_of(m.body)]
    releases: list[Action] = [_release(observed, machine.key.name, why) for machine in held]
    deletes: list[Action] = [Delete(machine.ref, why) for machine in observed.machines if not machine.deleting]
    outcome = Blocked(f"{len(observed.machines)} Machines are left", REQUEUE)
    return Plan((*steps(releases, deletes), *_reported(observed, None)), outcome)


# -- what is said


def _reported(
    observed: Observed,
    decision: Decision | None,
    record: dict[str, Any] | None = None,
    *,
    guarded: bool = False,
    held: saving.Held | None = None,
) -> tuple[tuple[Action, ...], ...]:
    extra = dict(record or {})
    if observed.pending is not None and "pending" not in extra and not _unseen(observed):
        extra["pending"] = None
    if not observed.cluster and not observed.hold:
        extra.setdefault("next", None)
    patch = status.patch(observed, decision, extra, held)
    if guarded and record:
        patch = {**patch, **{key: value for key, value in record.items() if key == "pending"}}
    if not patch:
        return ()
    why = decision.step.why if decision is not None else f"ControlPlane {key_of(observed.body).name}"
    return steps([_status_patch(observed, patch, why)])


def _status_patch(observed: Observed, patch: dict[str, Any], why: str) -> Patch:
    return Patch(observed.ref, {"status": patch}, why, "status", resource_version_of(observed.body))


def _events(observed: Observed, decision: Decision) -> list[Action]:
    """One event for each change, and one when something begins that only a person can mend."""
    step = decision.step
    if not isinstance(step, Wait):
        return [Event(observed.ref, "Normal", str(Reason.CONTROL_PLANE_CHANGED), step.why)]
    events: list[Action] = []
    if step.stuck and observed.status.get("next") != step.why:
        events.append(Event(observed.ref, "Warning", str(Reason.CONTROL_PLANE_STUCK), step.why))
    before = find(observed.status.get("conditions"), ControlPlaneCondition.ETCD_HEALTHY)
    now = status.etcd_condition(observed)
    if now.status == "False" and (before is None or before.get("reason") != now.reason):
        events.append(Event(observed.ref, "Warning", str(now.reason), now.message))
    return events


def _outcome(decision: Decision) -> Outcome:
    step = decision.step
    if not isinstance(step, Wait):
        return plans.Wait(REQUEUE, step.why)
    if step.stuck:
        return Blocked(step.why)
    return plans.Wait(STEADY if step.settled else REQUEUE, step.why)
