"""What a failed provider call means for the next one, and for the reader of the status."""

from __future__ import annotations

from controllers.kernel.plan import Failed, Outcome, Wait
from controllers.kernel.view import Attempt
from controllers.machine.decision import Cause
from controllers.machine.observe import Observed
from providers.base.errors import REACTIONS, ErrorClass

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


def current(observed: Observed) -> Attempt | None:
    """The failure that still holds: one of an older spec says nothing about this one."""
    attempt = observed.reads.attempt
    if attempt is None or attempt.call == "reboot":
        return None
    if attempt.spec_hash:
        return attempt if attempt.spec_hash == observed.desired.spec_hash else None
    return None if observed.spec_is_new and not observed.deleting else attempt


def of_reboot(observed: Observed) -> Attempt | None:
    """The same of reboots alone: they are none of the spec's business."""
    attempt = observed.reads.attempt
    return attempt if attempt is not None and attempt.call == "reboot" else None


def of_deletion(observed: Observed) -> Attempt | None:
    """The same of deletions alone: a creation or change that failed says nothing about them, nor holds them up."""
    attempt = current(observed)
    return attempt if attempt is not None and attempt.call == "delete" else None


def is_due(attempt: Attempt | None, observed: Observed) -> bool:
    """Whether the next call may be made now."""
    return not observed.reads.in_flight and (attempt is None or observed.now >= attempt.retry_at)


def message(attempt: Attempt) -> str:
    """No counts and no times: they would cost a write for each try."""
    text = attempt.message if len(attempt.message) <= LONGEST_MESSAGE else f"{attempt.message[:LONGEST_MESSAGE]}…"
    return f"{text}: {ADVICE[attempt.error_class]}"


def terminal(attempt: Attempt | None) -> Cause | None:
    """The failure to report as terminal, if the class is."""
    if attempt is None or not REACTIONS[attempt.error_class].terminal:
        return None
    return Cause(REACTIONS[attempt.error_class].error_reason, message(attempt))


def outcome(attempt: Attempt | None, observed: Observed, doing: str) -> Outcome:
    """When to look again while a call runs, has just been asked for, or has failed."""
    if attempt is None or observed.reads.in_flight:
        return Wait(2.0, doing)
    if REACTIONS[attempt.error_class].terminal:
        return Failed(attempt.error_class, message(attempt))
    return Wait(max(0.1, (attempt.retry_at - observed.now).total_seconds()), f"{doing}: {message(attempt)}")
