"""How much of the limits of each account is used: asked of its provider in the background, once a minute at most."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodewright.runtime.hosts.answers import Answers
from nodewright.runtime.hosts.scope import Scope
from providers.base.capabilities import Quota
from providers.base.errors import ProviderError

GOOD_FOR = 60.0
"""Seconds until an account is asked again, whatever it answered."""


class Quotas(Answers[tuple[Quota, ...]]):
    call = "quotas"

    async def _answer(self, config: Mapping[str, Any], scope: Scope) -> tuple[Quota, ...]:
        return await scope.quotas()

    def _failed(self, error: ProviderError) -> tuple[Quota, ...]:
        """Nothing is known: numbers of before would be taken for those of now."""
        return ()

    def _good_for(self, answer: tuple[Quota, ...]) -> float:
        return GOOD_FOR
