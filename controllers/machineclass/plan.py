"""Say of a MachineClass whether it can be used and by how many Machines it is. Nothing else is done with it."""

from __future__ import annotations

from typing import Any

from api.conditions import ClassCondition, Reason
from controllers.kernel.actions import Action, Event, Patch
from controllers.kernel.conditions import Condition, find, merge, merge_patch
from controllers.kernel.pace import StatusChange, hold_back
from controllers.kernel.plan import NOTHING, Plan, Wait, steps
from controllers.kernel.refs import generation_of, is_deleting, key_of, resource_version_of
from controllers.machineclass.observe import Observed

_MOST_SHOWN = 5
_ACCEPTED = str(ClassCondition.ACCEPTED)


def plan(observed: Observed) -> Plan:
    """NOTHING if the status says it all. One that is going is nobody's business any more."""
    if observed.paused or is_deleting(observed.body):
        return NOTHING
    said = accepted(observed)
    patch = merge_patch(observed.status, _desired(observed, said))
    if not patch:
        return NOTHING
    change = StatusChange(observed.status, _as_progress(patch), len(observed.machines), arrived=False)
    pause = hold_back(change, observed.machines, observed.now)
    if pause > 0:
        return Plan(outcome=Wait(pause, "its Machines are moving"))
    why = f"MachineClass {key_of(observed.body)}: {said.reason}"
    write = Patch(observed.ref, {"status": patch}, why, "status", resource_version_of(observed.body))
    return Plan(steps([write], _news(observed, said)))


def accepted(observed: Observed) -> Condition:
    """By the schema of its provider; what only the provider itself can find wrong is told by the Machines."""
    if not observed.problems:
        return Condition(_ACCEPTED, "True", str(Reason.ACCEPTED))
    shown = [f"{p.path}: {p.message}" if p.path else p.message for p in observed.problems[:_MOST_SHOWN]]
    more = len(observed.problems) - _MOST_SHOWN
    text = "; ".join(shown) + (f"; and {more} more" if more > 0 else "")
    unknown = any("no installed provider" in problem.message for problem in observed.problems)
    reason = Reason.PROVIDER_UNKNOWN if unknown else Reason.INVALID_CONFIGURATION
    return Condition(_ACCEPTED, "False", str(reason), text)


def _desired(observed: Observed, said: Condition) -> dict[str, Any]:
    generation = generation_of(observed.body)
    return {
        "observedGeneration": generation,
        "machines": len(observed.machines),
        "conditions": merge(observed.status.get("conditions"), [said], generation, observed.now),
    }


def _news(observed: Observed, said: Condition) -> list[Action]:
    """An Event when it can't be used (any more)."""
    before = find(observed.status.get("conditions"), _ACCEPTED)
    if said.status == "True" or (before is not None and before.get("message") == said.message):
        return []
    return [Event(observed.ref, "Warning", said.reason, said.message)]


def _as_progress(patch: dict[str, Any]) -> dict[str, Any]:
    """In the words of the pace that it shares with the sets; only the count may wait."""
    return {"replicas" if name == "machines" else f"its {name}": value for name, value in patch.items()}
