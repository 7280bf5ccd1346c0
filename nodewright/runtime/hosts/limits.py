"""A token bucket and a circuit breaker. Pure: time comes in as an argument (seconds of a monotonic clock)."""

from __future__ import annotations

from random import Random

from providers.base.errors import REACTIONS, ErrorClass, ProviderError

_ROUNDING = 1e-6
"""So that whoever slept until its token is there finds it, whatever floating point made of the sum."""


def backoff(error_class: ErrorClass, failures: int, random: Random, retry_after: float | None = None) -> float:
    """Seconds to wait after ``failures`` failures in a row, by the class's reaction; 20 % jitter.

    A longer wait that the provider asked for is kept.
    """
    reaction = REACTIONS[error_class]
    seconds: float = min(reaction.first * 2 ** min(failures - 1, 30), reaction.longest) * random.uniform(0.8, 1.2)
    asked = retry_after * random.uniform(1.0, 1.2) if retry_after else 0.0
    return max(seconds, asked)


class TokenBucket:
    """``rate`` calls per second on average, ``burst`` at once."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._tokens = float(burst)
        self._at: float | None = None

    def take(self, now: float) -> float:
        """Take a token and answer 0, or answer the seconds until there is one."""
        if self._at is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens >= 1 - _ROUNDING:
            self._tokens -= 1
            return 0.0
        return (1 - self._tokens) / self._rate


class Breaker:
    """Closed: calls go. Open: none does until ``until``. Then one probe goes; its result closes or opens again."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._failures = 0
        self._probing = False
        self.until: float | None = None
        self.error: ProviderError | None = None

    def is_open(self, now: float) -> bool:
        """No call may go now, not even as a probe."""
        return self.until is not None and now < self.until

    def allows(self, now: float) -> bool:
        """Whether one more call may start; the first one after ``until`` is the probe."""
        if self.until is None:
            return True
        return now >= self.until and not self._probing

    def started(self) -> None:
        if self.until is not None:
            self._probing = True

    def succeeded(self) -> None:
        self._failures, self._probing = 0, False
        self.until = self.error = None

    def failed(self, error: ProviderError, now: float) -> None:
        """Only classes that speak of the whole scope open it; any other answer shows that the API is alive."""
        if not REACTIONS[error.error_class].opens_breaker:
            self.succeeded()
            return
        self._probing = False
        if self.is_open(now):
            return  # calls that were under way when it opened tell nothing new
        self._failures += 1
        self.until = now + backoff(error.error_class, self._failures, self._random, error.retry_after)
        self.error = error

    def abandoned(self) -> None:
        """The probe was cancelled: another one may go."""
        self._probing = False
