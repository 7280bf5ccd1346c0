"""What one reconcile decides about a Machine, and what a failed provider call means for it.

The values are made before they are put into a Plan; the status is written from them.

What a failed provider call means for the next one, and for the reader of the status.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from api.conditions import MachineCondition, Reason
from controllers.kernel.conditions import Condition
from controllers.kernel.plan import Failed, Outcome, Settled, Step, Wait
from controllers.kernel.view import Attempt
from controllers.machine.phases import Stage
from providers.base.errors import REACTIONS, ErrorClass

if TYPE_CHECKING:
    from controllers.machine.observe import Observed


SETTLED = Settled()


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason for programs, and its text for people."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Decision:
    """``stage`` None and a condition None mean: nothing is known that could change what the status says of it.

    ``record`` holds further keys of the status, None removing them. ``steps`` run after the status was written.
    """

    stage: Stage | None
    steps: tuple[Step, ...] = ()
    outcome: Outcome = SETTLED
    infrastructure: Condition | None = None
    up_to_date: Condition | None = None
    extra: tuple[Condition, ...] = ()
    failure: Cause | None = None
    """Terminal: only a person or another spec helps."""
    record: Mapping[str, Any] = field(default_factory=dict)
    warning: Cause | None = None
    """A reason and text worth an Event when the reason is new."""
    news: Cause | None = None
    """The same for an Event of type Normal: something begins that nobody may expect. Decided in one reconcile only."""


def infrastructure(status: bool | None, reason: str, message: str = "") -> Condition:
    return Condition(MachineCondition.INFRASTRUCTURE_READY, _text(status), str(reason), message)


def up_to_date(status: bool | None, reason: str, message: str = "") -> Condition:
    return Condition(MachineCondition.UP_TO_DATE, _text(status), str(reason), message)


def condition(type_: str, status: bool | None, reason: str, message: str = "") -> Condition:
    return Condition(str(type_), _text(status), str(reason), message)


def _text(status: bool | None) -> Any:
    return {True: "True", False: "False", None: "Unknown"}[status]


IS_UP_TO_DATE = up_to_date(True, Reason.UP_TO_DATE)


LONGEST_MESSAGE = 700
"""Characters of a provider's own words in conditions; an Event holds no more than 1024 in all."""
ADVICE: dict[ErrorClass, str] = {
    ErrorClass.QUOTA_EXCEEDED: "raise the quota or delete something; it is tried again",
    ErrorClass.STOCK_OUT: "allow another zone or size, or wait; it is tried again",
    ErrorClass.INVALID_CONFIGURATION: "change the provider config",
    ErrorClass.UNSUPPORTED_CHANGE: "undo the change, or delete the Machine",
    ErrorClass.UNAUTHORIZED: "check the provider's credentials; it is tried again",
    ErrorClass.RATE_LIMITED: "nothing to do; it is tried again",
    ErrorClass.UNAVAILABLE: "nothing to do but to look after the provider; it is tried again",
    ErrorClass.TIMEOUT: "nothing to do; the next reconcile checks whether it worked",
    ErrorClass.CONFLICT: "nothing to do; it is tried again",
    ErrorClass.NOT_FOUND: "check the names in the provider config; it is tried again",
    ErrorClass.INTERNAL: "look at the provider; it is tried again",
}
"""What to do about each class, for people."""


def current_attempt(observed: Observed) -> Attempt | None:
    """The failure that still holds: one of an older spec says nothing about this one."""
    attempt = observed.reads.attempt
    if attempt is None or attempt.call == "reboot":
        return None
    if attempt.spec_hash:
        return attempt if attempt.spec_hash == observed.desired.spec_hash else None
    return None if observed.spec_is_new and not observed.deleting else attempt


def reboot_attempt(observed: Observed) -> Attempt | None:
    """The same of reboots alone: they are none of the spec's business."""
    attempt = observed.reads.attempt
    return attempt if attempt is not None and attempt.call == "reboot" else None


def deletion_attempt(observed: Observed) -> Attempt | None:
    """The same of deletions alone: a creation or change that failed says nothing about them, nor holds them up."""
    attempt = current_attempt(observed)
    return attempt if attempt is not None and attempt.call == "delete" else None


def call_is_due(attempt: Attempt | None, observed: Observed) -> bool:
    """Whether the next call may be made now."""
    return not observed.reads.in_flight and (attempt is None or observed.now >= attempt.retry_at)


def failure_message(attempt: Attempt) -> str:
    """No counts and no times: they would cost a write for each try."""
    text = attempt.message if len(attempt.message) <= LONGEST_MESSAGE else f"{attempt.message[:LONGEST_MESSAGE]}…"
    return f"{text}: {ADVICE[attempt.error_class]}"


def terminal_cause(attempt: Attempt | None) -> Cause | None:
    """The failure to report as terminal, if the class is."""
    if attempt is None or not REACTIONS[attempt.error_class].terminal:
        return None
    return Cause(REACTIONS[attempt.error_class].error_reason, failure_message(attempt))


def call_outcome(attempt: Attempt | None, observed: Observed, doing: str) -> Outcome:
    """When to look again while a call runs, has just been asked for, or has failed."""
    if attempt is None or observed.reads.in_flight:
        return Wait(2.0, doing)
    if REACTIONS[attempt.error_class].terminal:
        return Failed(attempt.error_class, failure_message(attempt))
    return Wait(max(0.1, (attempt.retry_at - observed.now).total_seconds()), f"{doing}: {failure_message(attempt)}")
