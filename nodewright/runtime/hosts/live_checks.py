"""What providers find in their clouds of what configs name: one question for all Machines of a config.

Those who asked are woken by an answer that is worth a word: something is missing, or is there again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from api.secrets import secret_values
from controllers.kernel.view import ConfigChecked, ConfigProblem, LiveCheck, LoginRefused, NotChecked
from nodewright.runtime.hosts.answers import Answers
from nodewright.runtime.hosts.scope import Scope
from nodewright.runtime.hosts.secrets import without
from providers.base.errors import ErrorClass, ProviderError

GOOD_FOR = 60.0
"""Seconds until it is asked again; providers remember what they have looked up for longer."""
ASKED = NotChecked("its provider has yet to say", asked=True)
_AT_FAULT = {ErrorClass.NOT_FOUND, ErrorClass.INVALID_CONFIGURATION}


class LiveChecks(Answers[LiveCheck]):
    """Paths are those below the config. ``changed`` gets the UIDs of Machines."""

    call = "validate"

    def __init__(self, changed: Callable[[str], None]) -> None:
        super().__init__()
        self._changed = changed
        self._curious: dict[bytes, set[str]] = {}

    def look_for(self, uid: str, config: Mapping[str, Any], scope: Scope) -> LiveCheck:
        """``uid`` is the Machine that wants to know, "" for none."""
        answer = self.look(config, scope)
        key = self.key(config, scope)
        if uid and key in self._pending:
            self._curious.setdefault(key, set()).add(uid)
        return ASKED if answer is None else answer

    async def _answer(self, config: Mapping[str, Any], scope: Scope) -> LiveCheck:
        secrets = sorted(set(secret_values(config)), key=len, reverse=True)
        try:
            found = await scope.validate(config)
        except ProviderError as error:
            raise ProviderError(error.error_class, without(secrets, error.message)) from None
        return ConfigChecked(tuple(ConfigProblem(one.path, without(secrets, one.message)) for one in found))

    def _failed(self, error: ProviderError) -> LiveCheck:
        if error.error_class is ErrorClass.UNAUTHORIZED:
            return LoginRefused(error.message)
        if error.error_class in _AT_FAULT:
            return ConfigChecked((ConfigProblem("", error.message),))
        return NotChecked(error.message)

    def _good_for(self, answer: LiveCheck) -> float:
        return GOOD_FOR

    def _answered(self, key: bytes, before: LiveCheck | None, now: LiveCheck) -> None:
        curious = self._curious.pop(key, set())
        if isinstance(now, NotChecked) or now == (before or ConfigChecked()):
            return
        for uid in sorted(curious):
            self._changed(uid)
