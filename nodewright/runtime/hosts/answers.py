"""What a provider says of a config: asked in the background, once for all who want to know, remembered for a while."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextvars import Context
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Generic, TypeVar

import orjson
import structlog

from api.secrets import secret_values
from nodewright.runtime.hosts.scope import Scope
from nodewright.runtime.telemetry import logs
from providers.base.errors import ErrorClass, ProviderError

_log = structlog.get_logger("nodewright.hosts")

_MOST = 4096

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class _Answer(Generic[Value]):
    value: Value
    until: float


class Answers(ABC, Generic[Value]):
    """One event loop. An old answer is shown while a new one is fetched."""

    call = ""
    """The provider's method, for the log."""

    def __init__(self) -> None:
        self._answers: dict[bytes, _Answer[Value]] = {}
        self._pending: dict[bytes, asyncio.Task[None]] = {}

    def look(self, config: Mapping[str, Any], scope: Scope) -> Value | None:
        """None: it is being asked, and has never answered."""
        key = self.key(config, scope)
        known = self._answers.get(key)
        if (known is None or known.until <= _time()) and key not in self._pending:
            # In a context of its own: nothing of the reconcile that happened to ask may stick to its log lines.
            self._pending[key] = asyncio.create_task(self._ask(key, config, scope), name=self.call, context=Context())
        return known.value if known is not None else None

    @staticmethod
    def key(config: Mapping[str, Any], scope: Scope) -> bytes:
        """A digest: configs are as long as their authors want."""
        return sha256(orjson.dumps([scope.name, config], option=orjson.OPT_SORT_KEYS)).digest()

    async def settled(self) -> None:
        """Nobody is being asked; never raises."""
        await asyncio.gather(*self._pending.values(), return_exceptions=True)

    async def close(self) -> None:
        tasks = list(self._pending.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @abstractmethod
    async def _answer(self, config: Mapping[str, Any], scope: Scope) -> Value:
        """Ask the provider. Raises ProviderError."""

    @abstractmethod
    def _failed(self, error: ProviderError) -> Value:
        """What to say where it did not answer."""

    @abstractmethod
    def _good_for(self, answer: Value) -> float:
        """Seconds until it is asked again."""

    def _answered(self, key: bytes, before: Value | None, now: Value) -> None:
        """There is an answer."""

    async def _ask(self, key: bytes, config: Mapping[str, Any], scope: Scope) -> None:
        try:
            answer = await self._answer(config, scope)
        except ProviderError as error:
            answer = self._failed(error)
        except Exception as error:
            with logs.hiding(secret_values(config)):
                _log.exception("provider raised an unexpected error", scope=scope.name, call=self.call)
            answer = self._failed(ProviderError(ErrorClass.INTERNAL, f"unexpected {type(error).__name__}"))
        finally:
            self._pending.pop(key, None)
        before = self._answers.get(key)
        if len(self._answers) >= _MOST and key not in self._answers:
            self._answers.clear()
        self._answers[key] = _Answer(answer, _time() + self._good_for(answer))
        self._answered(key, before.value if before is not None else None, answer)


def _time() -> float:
    return asyncio.get_running_loop().time()
