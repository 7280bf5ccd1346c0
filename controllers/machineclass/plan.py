"""Say of a MachineClass whether it can be used and by how many Machines it is. Nothing else is done with it."""

from __future__ import annotations

from typing import Any

from api.conditions import ClassCondition, Reason
from controllers.kernel.actions import Action, Event, Patch
from controllers.kernel.budgets import StatusChange, hold_back
from controllers.kernel.conditions import Condition, find, in_words, merge, merge_patch
from controllers.kernel.plan import NOTHING, Outcome, Plan, Settled, Wait, steps
from controllers.kernel.provider_config import found_condition
from controllers.kernel.refs import generation_of, is_deleting, key_of, resource_version_of
from controllers.kernel.view import NOBODY_ASKED, ConfigChecked, NotChecked
from controllers.machineclass.observe import Observed

ANSWER = 1.0
"""Seconds until the first answer of a provider is looked for."""
REQUEUE_AFTER = 20.0
"""Seconds until the next look at a class of which the last answer was not good."""
_ACCEPTED, _VALID = str(ClassCondition.ACCEPTED), str(ClassCondition.CONFIGURATION_VALID)


def plan(observed: Observed) -> Plan:
    """NOTHING if the status says it all. One that is going is nobody's business any more."""
    if observed.paused or is_deleting(observed.body):
        return NOTHING
    condition = accepted(observed)
    patch = merge_patch(observed.status, _desired(observed, condition))
    if not patch:
        return Plan(outcome=_until_its_provider_answers(observed))
    change = StatusChange(observed.status, _as_progress(patch), len(observed.machines), arrived=False)
    pause = hold_back(change, observed.machines, observed.now)
    if pause > 0:
        return Plan(outcome=Wait(pause, "its Machines are moving"))
    why = f"MachineClass {key_of(observed.body)}: {condition.reason}"
    write = Patch(observed.ref, {"status": patch}, why, "status", resource_version_of(observed.body))
    return Plan(steps([write], _news(observed, condition)), _until_its_provider_answers(observed))


def accepted(observed: Observed) -> Condition:
    """By the schema of its provider; what only the provider itself can find wrong is a condition of its own."""
    if not observed.problems:
        return Condition(_ACCEPTED, "True", str(Reason.ACCEPTED))
    unknown = any("no installed provider" in problem.message for problem in observed.problems)
    reason = Reason.PROVIDER_UNKNOWN if unknown else Reason.INVALID_CONFIGURATION
    return Condition(_ACCEPTED, "False", str(reason), in_words(observed.problems))


def _desired(observed: Observed, condition: Condition) -> dict[str, Any]:
    generation = generation_of(observed.body)
    before = observed.status.get("conditions") or ()
    valid = None if observed.problems else found_condition(_VALID, observed.live)
    kept = [c for c in before if not observed.problems or c.get("type") != _VALID]
    decided = [condition] if valid is None else [condition, valid]
    return {
        "observedGeneration": generation,
        "machines": len(observed.machines),
        "conditions": merge(kept, decided, generation, observed.now),
    }


def _until_its_provider_answers(observed: Observed) -> Outcome:
    """Nobody tells when the provider has answered, and what is missing now may come."""
    if observed.problems or observed.live in {ConfigChecked(), NOBODY_ASKED}:
        return Settled()
    if isinstance(observed.live, NotChecked) and observed.live.asked:
        return Wait(ANSWER, "its provider looks for what it names")
    return Wait(REQUEUE_AFTER, "what it names is looked for again")


def _news(observed: Observed, condition: Condition) -> list[Action]:
    """An Event when it can't be used (any more)."""
    before = find(observed.status.get("conditions"), _ACCEPTED)
    if condition.status == "True" or (before is not None and before.get("message") == condition.message):
        return []
    return [Event(observed.ref, "Warning", condition.reason, condition.message)]


def _as_progress(patch: dict[str, Any]) -> dict[str, Any]:
    """In the words of the pace that it shares with the sets; only the count may wait."""
    return {"replicas" if name == "machines" else f"its {name}": value for name, value in patch.items()}
