"""Say what is to be said of a Cluster. ``apiEndpoints`` are a person's, but for a cluster that Machines make."""

from __future__ import annotations

from collections import Counter
from typing import Any

from api import names
from api.conditions import ClusterCondition, Reason
from api.names import ClusterPhase
from controllers.cluster import certificates, endpoint, reachability
from controllers.cluster.observe import Observed
from controllers.kernel.actions import Patch
from controllers.kernel.budgets import StatusChange, hold_back
from controllers.kernel.conditions import Condition, counted, merge, merge_patch, typed
from controllers.kernel.deletions import Deletions, roll_up_deletions
from controllers.kernel.node_policy import endpoint_of
from controllers.kernel.plan import NOTHING, Blocked, Plan, Step, Wait, steps
from controllers.kernel.refs import generation_of, key_of, resource_version_of
from controllers.kernel.view import Unreachable

_OWNED = frozenset(str(type_) for type_ in ClusterCondition)
_MOST_REASONS = 3


def plan(observed: Observed) -> Plan:
    """NOTHING if the status says it all."""
    goes = observed.deleting and observed.empty
    if goes and endpoint.is_gone(observed.endpoint):
        return _release(observed)
    if (hold := reachability.hold(observed)) is not None:
        return Plan(steps([hold]))
    patch = merge_patch(observed.status, _desired(observed))
    renewals = _renewals(observed, last=goes)
    if not patch:
        return Plan(renewals, _waiting(observed).outcome)
    ready = sum(machine.ready for machine in observed.machines)
    change = StatusChange(observed.status, _as_progress(patch), len(observed.machines), ready == len(observed.machines))
    news = [*reachability.news(observed), *certificates.news(observed, certificates.conditions(observed))]
    pause = 0.0 if observed.deleting or observed.paused or news else hold_back(change, observed.machines, observed.now)
    if pause > 0:
        return Plan(renewals, Wait(pause, "its Machines are moving"))
    why = f"Cluster {key_of(observed.cluster)}: {ready} of {counted(len(observed.machines), 'Machine')} ready"
    write = Patch(observed.ref, {"status": patch}, why, "status", resource_version_of(observed.cluster))
    return Plan((*renewals, *steps([write], news)), _waiting(observed).outcome)


def _renewals(observed: Observed, *, last: bool) -> tuple[Step, ...]:
    """What keeps its certificates and its endpoint current. ``last``: the Cluster goes, and its endpoint first."""
    ends = [] if observed.paused else endpoint.actions(observed.endpoint, observed.cluster, last=last)
    return steps([*certificates.actions(observed), *ends])


def _release(observed: Observed) -> Plan:
    """Its last Machine is gone, so nothing holds the Cluster any more."""
    have = list(observed.cluster["metadata"].get("finalizers") or ())
    if names.CLUSTER_FINALIZER not in have:
        return NOTHING
    kept = [name for name in have if name != names.CLUSTER_FINALIZER]
    why = f"Cluster {key_of(observed.cluster)} has no Machine left"
    patch = {"metadata": {"finalizers": kept or None}}
    return Plan(steps([Patch(observed.ref, patch, why, resource_version=resource_version_of(observed.cluster))]))


def _waiting(observed: Observed) -> Plan:
    soon = 0.0 if observed.paused else endpoint.look_again(observed.endpoint)
    if observed.deleting:
        text = _left(observed) if not observed.empty else "its endpoint is being removed"
        return Plan(outcome=Wait(soon, text) if soon else Blocked(text))
    pauses = [pause for pause in (certificates.look_again(observed), soon) if pause]
    return (
        Plan(outcome=Wait(min(pauses), "its certificates and its endpoint are looked at again")) if pauses else NOTHING
    )


def _desired(observed: Observed) -> dict[str, Any]:
    decided = _decided(observed)
    types = {condition.type for condition in decided}
    previous = typed(observed.status.get("conditions"))
    kept = _OWNED - (certificates.OWNED if certificates.is_unknown(observed) else frozenset())
    before = [c for c in previous if c["type"] in types or c["type"] not in kept]
    return {
        "observedGeneration": generation_of(observed.cluster),
        "phase": str(_phase(observed)),
        "machines": len(observed.machines),
        "readyMachines": sum(machine.ready for machine in observed.machines),
        **reachability.facts(observed),
        **_endpoints(observed),
        **endpoint.record(observed.endpoint, observed.cluster),
        "conditions": merge(before, decided, generation_of(observed.cluster), observed.now),
    }


def _endpoints(observed: Observed) -> dict[str, Any]:
    """KEP-3's ``status.apiEndpoints`` of a cluster that Machines make: where its spec wants it."""
    host, _, port = endpoint_of(observed.cluster).rpartition(":")
    return {"apiEndpoints": [{"host": host.strip("[]"), "port": int(port)}]} if host else {}


def _decided(observed: Observed) -> list[Condition]:
    decided = [_ready(observed), reachability.condition(observed), *certificates.conditions(observed)]
    decided += endpoint.conditions(observed.endpoint)
    if observed.deleting:
        going = _deletions(observed)
        text = f"{_left(observed)}; {going.text}" if going.text else _left(observed)
        decided.append(Condition(str(ClusterCondition.DELETING), "True", going.reason or str(Reason.DELETING), text))
    if observed.paused:
        decided.append(Condition(str(ClusterCondition.PAUSED), "True", str(Reason.PAUSED), observed.paused))
    return decided


def _ready(observed: Observed) -> Condition:
    """It can be reached and all its Machines are ready; a Cluster without any has nothing that is not."""
    type_ = str(ClusterCondition.READY)
    if observed.deleting:
        return Condition(type_, "False", str(Reason.DELETING), "the Cluster is being deleted")
    if isinstance(observed.workload, Unreachable):
        return Condition(type_, "False", observed.workload.reason, "it can't be reached (see condition Reachable)")
    reasons = Counter(machine.reason for machine in observed.machines if not machine.ready)
    if not reasons:
        return Condition(type_, "True", str(Reason.READY))
    summary = ", ".join(f"{count}× {reason}" for reason, count in reasons.most_common(_MOST_REASONS))
    more = "" if len(reasons) <= _MOST_REASONS else ", …"
    return Condition(type_, "False", str(Reason.NOT_READY), f"Machines that are not ready: {summary}{more}")


def _phase(observed: Observed) -> ClusterPhase:
    if observed.deleting:
        return ClusterPhase.DELETING
    if not observed.machines:
        return ClusterPhase.PENDING
    if any(machine.ready for machine in observed.machines):
        return ClusterPhase.PROVISIONED
    return ClusterPhase.FAILED if all(machine.failed for machine in observed.machines) else ClusterPhase.PROVISIONING


def _deletions(observed: Observed) -> Deletions:
    return roll_up_deletions((machine for machine in observed.machines if machine.deleting), observed.now)


def _left(observed: Observed) -> str:
    return f"{counted(len(observed.machines), 'Machine')} and {counted(observed.sets, 'MachineSet')} of it left"


def _as_progress(patch: dict[str, Any]) -> dict[str, Any]:
    """In the words of the pace that it shares with the sets: counts of Machines are replicas to it."""
    words = {"machines": "replicas", "readyMachines": "readyReplicas", "phase": "conditions"}
    return {words.get(name, name): patch.get("conditions", []) if name == "phase" else patch[name] for name in patch}
