"""Is the Machine Ready? Its Node's word, if its host is well and all readiness gates hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.conditions import MachineCondition, Reason
from controllers.kernel.conditions import Condition, find, is_true
from controllers.kernel.refs import Obj
from controllers.machine import joining, node_takeover, unreachable
from controllers.machine.decision import Decision, condition
from controllers.machine.node_link import Conflict, Unlinked
from controllers.machine.observe import Observed
from controllers.machine.phases import Stage

LONGEST_WORDS = 1000
"""Characters of a Node's own words in a condition."""


def node_is_ready(node: Obj | None) -> bool:
    return node is not None and is_true((node.get("status") or {}).get("conditions"), "Ready")


def node_condition(observed: Observed) -> Condition:
    """NodeReady: what the Node itself says, or why there is none."""
    if observed.unreachable is not None:
        return unreachable.node_condition(observed)
    type_, link = MachineCondition.NODE_READY, observed.link
    if isinstance(link, Conflict):
        return condition(type_, False, Reason.NODE_CONFLICT, link.why)
    if observed.node_takeover is not None:
        return condition(type_, False, Reason.NODE_TAKEN_OVER, node_takeover.message(observed.node_takeover))
    if isinstance(link, Unlinked):
        reference = observed.status.get("nodeRef")
        if isinstance(reference, Mapping) and observed.provider_id and not observed.replaced_host:
            return condition(type_, False, Reason.NODE_MISSING, f"Node {reference.get('name')} is gone")
        return condition(type_, False, Reason.WAITING_FOR_NODE, link.why or "no Node has joined yet")
    ready = find((link.node.get("status") or {}).get("conditions"), "Ready")
    if ready is None:
        return condition(type_, None, Reason.NODE_NOT_READY, "the Node has not said yet whether it is ready")
    if ready.get("status") == "True":
        return condition(type_, True, Reason.READY)
    unknown = ready.get("status") == "Unknown"
    return condition(type_, None if unknown else False, Reason.NODE_NOT_READY, _words(observed, ready))


def _words(observed: Observed, ready: Mapping[str, Any]) -> str:
    """Why the Node is not ready. The words of the first time stay as long as the reason does.

    A kubelet's message counts seconds ("PLEG was last seen active 3m2s ago"), and each count would cost a write.
    """
    reason = str(ready.get("reason") or "NotReady")
    node_ready = find(observed.status.get("conditions"), MachineCondition.NODE_READY)
    before = str(node_ready.get("message") or "") if node_ready else ""
    if before.partition(":")[0] == reason:
        return before
    return f"{reason}: {ready.get('message') or ''}".rstrip(": ")[:LONGEST_WORDS]


def ready_condition(observed: Observed, decision: Decision, infrastructure: Condition | None) -> Condition:
    """Ready: the first thing that is in the way, else True.

    An unreachable provider is not in the way: the Node speaks for itself (a provider's outage must not make all
    Machines look bad at once).
    """
    type_ = MachineCondition.READY
    if observed.deleting:
        return _going(decision)
    if decision.failure is not None:
        reason = (
            infrastructure.reason if infrastructure and infrastructure.status == "False" else decision.failure.reason
        )
        return condition(type_, False, reason, decision.failure.message)
    if decision.stage is Stage.REPLACING:
        return condition(type_, False, Reason.REPLACING, "the host is replaced by a new one")
    runs = infrastructure is None or infrastructure.status != "False"
    failure = joining.failure(observed)
    if failure is not None and (runs or (infrastructure is not None and infrastructure.reason == Reason.PROVISIONING)):
        # A host that speaks is newer news than a list in which it still boots.
        return condition(type_, False, failure.reason, failure.message)
    if infrastructure is not None and infrastructure.status == "False":
        return condition(type_, False, infrastructure.reason, infrastructure.message)
    if observed.unreachable is not None:
        return unreachable.may_be_ready(observed)
    node = node_condition(observed)
    if node.status != "True":
        return condition(type_, False, node.reason, node.message)
    gate = _failing_gate(observed)
    if gate:
        return condition(type_, False, Reason.READINESS_GATE_FAILED, gate)
    return condition(type_, True, Reason.READY)


def _going(decision: Decision) -> Condition:
    """What the condition Deleting says: tables and owners look at Ready alone, and have to name the cause."""
    deleting = next((one for one in decision.extra if one.type == MachineCondition.DELETING), None)
    if deleting is None:
        return condition(MachineCondition.READY, False, Reason.DELETING, "the Machine is being deleted")
    return condition(MachineCondition.READY, False, deleting.reason, deleting.message)


def _failing_gate(observed: Observed) -> str:
    gates = observed.spec.get("readinessGates")
    for gate in gates if isinstance(gates, list) else ():
        name = gate.get("conditionType") if isinstance(gate, Mapping) else None
        if not name:
            continue
        want = "False" if gate.get("polarity") == "Negative" else "True"
        found = find(observed.status.get("conditions"), name)
        if found is None or found.get("status") != want:
            return f"condition {name} is {found.get('status') if found else 'absent'}, readinessGates ask for {want}"
    return ""
