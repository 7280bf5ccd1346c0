"""The last failed provider call of each Machine, with its back-off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

from controllers.kernel.view import Attempt
from nodewright.runtime.hosts.limits import backoff
from providers.base.errors import ProviderError


class Attempts:
    """By Machine UID. An attempt belongs to the spec it was made for: another spec starts afresh."""

    def __init__(self, now: Callable[[], datetime], random: Random) -> None:
        self._now = now
        self._random = random
        self._attempts: dict[str, tuple[str, Attempt]] = {}

    def of(self, uid: str, spec_hash: str = "") -> Attempt | None:
        """``spec_hash`` "" asks for any. A failed delete counts whatever the spec is."""
        made_for, attempt = self._attempts.get(uid, ("", None))
        return attempt if not spec_hash or not made_for or made_for == spec_hash else None

    def must_wait(self, uid: str, call: str, spec_hash: str) -> bool:
        """The same call was refused and its back-off is not over."""
        attempt = self.of(uid, spec_hash)
        return attempt is not None and attempt.call == call and self._now() < attempt.retry_at

    def failed(self, uid: str, call: str, spec_hash: str, error: ProviderError) -> Attempt:
        before = self.of(uid, spec_hash)
        in_a_row = before is not None and before.call == call and not error.progressed
        failures = before.failures + 1 if before is not None and in_a_row else 1
        now = self._now()
        pause = timedelta(seconds=backoff(error.error_class, failures, self._random, error.retry_after))
        attempt = Attempt(call, error.error_class, error.message, failures, now, now + pause)
        self._attempts[uid] = (spec_hash, attempt)
        return attempt

    def held_back(self, uid: str, call: str, spec_hash: str, error: ProviderError, seconds: float) -> Attempt:
        """The call was not made, since ``error`` has paused its whole scope for ``seconds`` more."""
        before = self.of(uid, spec_hash)
        now = self._now()
        retry_at = now + timedelta(seconds=seconds * self._random.uniform(1.0, 1.2))
        if before is not None and before.call == call and before.error_class is error.error_class:
            attempt = replace(before, message=error.message, retry_at=retry_at)
        else:
            attempt = Attempt(call, error.error_class, error.message, 1, now, retry_at)
        self._attempts[uid] = (spec_hash, attempt)
        return attempt

    def forget(self, uid: str) -> None:
        self._attempts.pop(uid, None)
