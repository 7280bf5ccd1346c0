"""Why a provider call failed: a closed set of classes, each with one documented reaction.

``docs/reference/errors.md`` is generated from the table. Peers that retry everything alike hammer a full quota and give
up on a short outage; gardener's controller has classes too, but one fixed wait for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ErrorClass(StrEnum):
    """Values are condition reasons, so they are CamelCase."""

    QUOTA_EXCEEDED = "QuotaExceeded"
    STOCK_OUT = "StockOut"
    INVALID_CONFIGURATION = "InvalidConfiguration"
    UNSUPPORTED_CHANGE = "UnsupportedChange"
    UNAUTHORIZED = "Unauthorized"
    RATE_LIMITED = "RateLimited"
    UNAVAILABLE = "Unavailable"
    TIMEOUT = "Timeout"
    CONFLICT = "Conflict"
    NOT_FOUND = "NotFound"
    INTERNAL = "Internal"


@dataclass(frozen=True, slots=True)
class Reaction:
    """What the shell does after an error of a class.

    ``first`` and ``longest``: bounds of the exponential back-off in seconds (doubling, full jitter of 20 %).
    ``terminal``: the Machine is reported Failed (errorReason, errorMessage) until its spec changes.
    ``opens_breaker``: calls of the whole scope pause, since one more would fail alike.
    """

    first: float
    longest: float
    terminal: bool = False
    opens_breaker: bool = False
    meaning: str = ""
    error_reason: str = "CreateError"


REACTIONS: dict[ErrorClass, Reaction] = {
    ErrorClass.QUOTA_EXCEEDED: Reaction(
        30,
        600,
        meaning="A quota is used up; only freeing or raising it helps.",
        error_reason="InsufficientResources",
    ),
    ErrorClass.STOCK_OUT: Reaction(
        30, 600, meaning="The provider has no such host left here now.", error_reason="InsufficientResources"
    ),
    ErrorClass.INVALID_CONFIGURATION: Reaction(
        60,
        600,
        terminal=True,
        meaning="The request can't ever work as it is.",
        error_reason="InvalidConfiguration",
    ),
    ErrorClass.UNSUPPORTED_CHANGE: Reaction(
        60,
        600,
        terminal=True,
        meaning="The provider can neither change nor replace.",
        error_reason="UnsupportedChange",
    ),
    ErrorClass.UNAUTHORIZED: Reaction(
        15, 300, opens_breaker=True, meaning="Credentials are missing, wrong or expired."
    ),
    ErrorClass.RATE_LIMITED: Reaction(5, 120, opens_breaker=True, meaning="Too many calls; Retry-After is kept."),
    ErrorClass.UNAVAILABLE: Reaction(2, 120, opens_breaker=True, meaning="The provider's API is down."),
    ErrorClass.TIMEOUT: Reaction(
        2, 60, meaning="No answer in time; the call may have worked, so the next reconcile reads before it acts."
    ),
    ErrorClass.CONFLICT: Reaction(1, 30, meaning="The host is busy with another change."),
    ErrorClass.NOT_FOUND: Reaction(5, 120, meaning="Something the request names does not exist (yet)."),
    ErrorClass.INTERNAL: Reaction(5, 300, meaning="The provider failed for a reason of its own."),
}


class ProviderError(Exception):
    """Raised by every provider method. ``message`` is shown to people: it must hold no secrets.

    ``retry_after``: seconds the provider asked to wait, if it did. ``progressed``: the call got further than the one
    before it and the next goes on from there, so the back-off starts anew.
    """

    def __init__(
        self, error_class: ErrorClass, message: str, retry_after: float | None = None, progressed: bool = False
    ) -> None:
        super().__init__(f"{error_class}: {message}")
        self.error_class = error_class
        self.message = message
        self.retry_after = retry_after
        self.progressed = progressed
