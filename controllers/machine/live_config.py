"""Does the provider find in its cloud what the Machine's config names? Asked while the host is not as asked for."""

from __future__ import annotations

from api.conditions import MachineCondition, Reason
from controllers.kernel import live_config
from controllers.kernel.conditions import Condition, find
from controllers.kernel.view import ConfigChecked, LiveCheck, NotChecked
from controllers.machine.observe import Observed

TYPE = MachineCondition.CONFIGURATION_VALID


def decide(observed: Observed) -> Condition | None:
    """None: there is nothing to say. Only what is wrong is said, and later on that it is so no more.

    Said of each Machine that is well, it would cost a write whenever the answer comes late.
    """
    before = find(observed.status.get("conditions"), TYPE)
    if observed.problems:
        return None  # its schema's word goes first
    live = _found(observed)
    if isinstance(live, NotChecked):
        return None if before is None else _as_reported(before)
    condition = live_config.condition(TYPE, live, "spec.")
    return None if before is None and condition is not None and condition.status == "True" else condition


def is_news(observed: Observed) -> bool:
    """Whether something is wrong that the status does not say yet."""
    reported, before = decide(observed), find(observed.status.get("conditions"), TYPE)
    return (
        reported is not None
        and reported.status == "False"
        and (before is None or before.get("message") != reported.message)
    )


def _found(observed: Observed) -> LiveCheck:
    """A host that was made of this very config proves that all it names was there."""
    host = observed.host
    if host is not None and host.spec_hash == observed.desired.spec_hash:
        return ConfigChecked()
    return observed.reads.live


def _as_reported(before: object) -> Condition:
    assert isinstance(before, dict)
    reason = before.get("reason") or Reason.INVALID_CONFIGURATION
    return Condition(TYPE, before.get("status", "Unknown"), str(reason), before.get("message", ""))
