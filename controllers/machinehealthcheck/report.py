"""What is written down: conditions of Machines, and the status of the check."""

from __future__ import annotations

from typing import Any

from api.conditions import HealthCheckCondition, MachineCondition, Reason
from controllers.kernel.actions import Patch
from controllers.kernel.conditions import Condition, Moment, counted, find, is_true, merge_in_place, merge_patch
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.refs import generation_of
from controllers.machinehealthcheck import external
from controllers.machinehealthcheck.budget import Choice
from controllers.machinehealthcheck.correlation import Freeze
from controllers.machinehealthcheck.health import Healthy, Unhealthy, Unseen
from controllers.machinehealthcheck.observe import Observed, Target
from controllers.machinehealthcheck.short_circuit import Circuit
from controllers.machinehealthcheck.spec import OWNED

MOST_NAMES = 1000
"""Unhealthy Machines that the status names."""
_OWNER_IS_ASKED = Condition(
    MachineCondition.OWNER_REMEDIATED,
    "False",
    Reason.WAITING_FOR_REMEDIATION,
    "the owner is asked to replace the Machine",
)
_CHECK_OWNED = tuple(str(type_) for type_ in HealthCheckCondition)


def machine_patch(observed: Observed, target: Target, choice: Choice) -> Patch | None:
    """The patch of the Machine's conditions; None if they are right.

    A Machine that never was unhealthy carries none: in a sound cluster checks cost no writes. Guarded by
    resourceVersion, since the list is replaced whole and the Machine's own controller writes to it as well.
    """
    if isinstance(target.verdict, Unseen):
        return None  # the last word stands
    facts = target.machine
    status = facts.body.get("status") or {}
    decided = _decided(observed, target, choice)
    before = status.get("conditions") or ()
    if not decided and not any(c.get("type") in OWNED for c in before):
        return None
    asked = choice.reboots.asked.get(target.name)
    new_status = {"conditions": merge_in_place(before, decided, OWNED, Moment(generation_of(facts.body), observed.now))}
    patch = merge_patch(status, new_status | ({"reboot": asked.to_status()} if asked is not None else {}))
    if not patch:
        return None
    return Patch(facts.ref, {"status": patch}, _why(target, choice), "status", facts.resource_version)


def _decided(observed: Observed, target: Target, choice: Choice) -> list[Condition]:
    """With a template another controller remediates, which has conditions of its own."""
    if observed.desired.template is not None:
        return _on_machine(target, selected_for_deletion=False) + external.conditions(target, choice)
    return _on_machine(target, selected_for_deletion=target.name in choice.selected_for_deletion)


def status_patch(observed: Observed, circuit: Circuit, frozen: Freeze, choice: Choice) -> dict[str, Any]:
    """The smallest patch of the check's status."""
    sick = sorted(target.name for target in observed.targets if _is_sick(target))
    left = circuit.left if choice.spare is None else min(circuit.left, choice.spare)
    new_status = {
        "observedGeneration": generation_of(observed.body),
        "expectedMachines": len(observed.targets),
        "currentHealthy": sum(1 for target in observed.targets if isinstance(target.verdict, Healthy)),
        "remediationsAllowed": 0 if circuit.why or frozen.fleet or observed.sees_none else left,
        "unhealthyMachines": sick[:MOST_NAMES] or None,
        "conditions": _conditions(observed, [_allowed(observed, circuit, frozen, choice)]),
    }
    if not sick and "unhealthyMachines" not in observed.status:
        del new_status["unhealthyMachines"]
    return merge_patch(observed.status, new_status)


def paused_patch(observed: Observed) -> dict[str, Any]:
    """Says that it is paused and leaves all else as it was."""
    condition = Condition(HealthCheckCondition.PAUSED, "True", Reason.PAUSED, observed.paused)
    moment = Moment(generation_of(observed.body), observed.now)
    conditions = merge_in_place(observed.status.get("conditions"), [condition], (), moment)
    return merge_patch(observed.status, {"conditions": conditions})


def invalid_patch(observed: Observed) -> dict[str, Any]:
    """The spec can't be used: nothing is looked at."""
    condition = Condition(
        HealthCheckCondition.REMEDIATION_ALLOWED, "False", observed.desired.reason, observed.desired.problem
    )
    new_status = {"observedGeneration": generation_of(observed.body), "conditions": _conditions(observed, [condition])}
    return merge_patch(observed.status, new_status)


def restriction_is_new(observed: Observed, patch: dict[str, Any]) -> Condition | None:
    """The condition that says that nothing may be replaced, if ``patch`` is the first to say so."""
    condition = find(patch.get("conditions"), HealthCheckCondition.REMEDIATION_ALLOWED)
    if condition is None or condition["status"] != "False":
        return None
    before = find(observed.status.get("conditions"), HealthCheckCondition.REMEDIATION_ALLOWED)
    if before is not None and (before.get("status"), before.get("reason")) == ("False", condition["reason"]):
        return None
    return Condition(condition["type"], "False", condition["reason"], condition["message"])


def is_news(facts: MachineFacts) -> bool:
    """No check has called it unhealthy yet."""
    return not facts.unhealthy


def _on_machine(target: Target, *, selected_for_deletion: bool) -> list[Condition]:
    type_ = MachineCondition.HEALTH_CHECK_SUCCEEDED
    conditions = (target.machine.body.get("status") or {}).get("conditions")
    if not isinstance(target.verdict, Unhealthy):
        known = find(conditions, type_)
        if known is None:
            return []
        if isinstance(target.verdict, Healthy) or is_true(conditions, type_):
            return [Condition(type_, "True", Reason.HEALTHY)]
        # It looks bad again before it was well: the old word stands until there is a new one.
        return [Condition(type_, "False", str(known.get("reason")), str(known.get("message") or ""))]
    unhealthy = Condition(type_, "False", target.verdict.reason, target.verdict.message)
    return [unhealthy, _OWNER_IS_ASKED] if selected_for_deletion else [unhealthy]


def _why(target: Target, choice: Choice) -> str:
    if not isinstance(target.verdict, Unhealthy):
        return f"Machine {target.name} is healthy again"
    if target.name in choice.selected_for_deletion:
        return f"Machine {target.name} is unhealthy and to be remediated: {target.verdict.message}"
    if target.name in choice.reboots.asked:
        return f"Machine {target.name} is unhealthy and its host to be rebooted: {target.verdict.message}"
    return f"Machine {target.name} is unhealthy: {target.verdict.message}"


def _is_sick(target: Target) -> bool:
    return isinstance(target.verdict, Unhealthy) or (isinstance(target.verdict, Unseen) and target.verdict.bad)


def _allowed(observed: Observed, circuit: Circuit, frozen: Freeze, choice: Choice) -> Condition:
    type_ = HealthCheckCondition.REMEDIATION_ALLOWED
    if circuit.why:
        return Condition(type_, "False", Reason.TOO_MANY_UNHEALTHY, circuit.why)
    if str(frozen):
        return Condition(type_, "False", Reason.CORRELATED_FAILURES, str(frozen))
    if observed.sees_none:
        return Condition(type_, "False", Reason.CONNECTION_DOWN, observed.unseen)
    condition = [observed.unseen] if observed.unseen else []
    if choice.given_up:
        were = counted(len(choice.given_up), "Machine was", "Machines were")
        condition.append(f"{were} replaced too often: {', '.join(choice.given_up[:5])}")
    return Condition(type_, "True", Reason.REMEDIATION_ALLOWED, "; ".join(condition))


def _conditions(observed: Observed, decided: list[Condition]) -> list[dict[str, Any]]:
    moment = Moment(generation_of(observed.body), observed.now)
    return merge_in_place(observed.status.get("conditions"), decided, _CHECK_OWNED, moment)
