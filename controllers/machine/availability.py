"""Is the Machine Available? Ready for ``spec.minReadySeconds`` without a break (CAPI v1beta2)."""

from __future__ import annotations

from datetime import timedelta

from api.conditions import MachineCondition, Reason
from controllers.kernel.conditions import Condition, find, parse_time
from controllers.machine.decision import condition
from controllers.machine.observe import Observed


def seconds_left(observed: Observed, ready: Condition) -> float:
    """Until time alone makes it Available; 0 if it is, or if something else than time is missing."""
    if ready.status != "True":
        return 0.0
    before = find(observed.status.get("conditions"), MachineCondition.READY)
    was_ready = before is not None and before.get("status") == "True"
    since = (parse_time(before.get("lastTransitionTime")) if before and was_ready else None) or observed.now
    return max((since + _min_ready(observed) - observed.now).total_seconds(), 0.0)


def available_condition(observed: Observed, ready: Condition) -> Condition:
    """Changes together with Ready, so that it costs no write of its own where ``minReadySeconds`` is 0."""
    type_ = MachineCondition.AVAILABLE
    if ready.status != "True":
        return condition(type_, None if ready.status == "Unknown" else False, Reason.NOT_READY)
    if seconds_left(observed, ready) > 0:
        text = f"not yet ready for {_min_ready(observed).total_seconds():.0f} s"
        return condition(type_, False, Reason.WAITING_FOR_MIN_READY_SECONDS, text)
    return condition(type_, True, Reason.AVAILABLE)


def _min_ready(observed: Observed) -> timedelta:
    """What is no number of seconds is 0, as it is where the field is absent: the CRD lets none such in."""
    asked = observed.spec.get("minReadySeconds")
    return timedelta(
        seconds=asked if isinstance(asked, int) and not isinstance(asked, bool) and 0 < asked < 2**31 else 0
    )
