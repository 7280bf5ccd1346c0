"""What hosts would be like that do not exist: asked of their provider once, and remembered for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextvars import Context
from dataclasses import dataclass
from typing import Any

import orjson
import structlog

from api.secrets import secret_values, without_secrets
from controllers.kernel.view import ShapeRead, ShapeUnknown
from nodewright.runtime import logs
from nodewright.runtime.hosts.scope import Scope
from providers.base.contract import Shape
from providers.base.errors import ProviderError

_log = structlog.get_logger("nodewright.hosts")

GOOD_FOR, BAD_FOR = 3600.0, 60.0
"""Seconds until a shape is asked for again, and an answer that was none."""
_MOST = 4096
_ASKED = ShapeUnknown("its provider has yet to say", asked=True)


@dataclass(frozen=True, slots=True)
class _Answer:
    read: ShapeRead
    until: float


class Shapes:
    """One event loop. An old answer is shown while a new one is fetched."""

    def __init__(self) -> None:
        self._answers: dict[bytes, _Answer] = {}
        self._asking: dict[bytes, asyncio.Task[None]] = {}

    def look(self, config: Mapping[str, Any], scope: Scope) -> ShapeRead:
        key = orjson.dumps([scope.name, config], option=orjson.OPT_SORT_KEYS)
        known = self._answers.get(key)
        if (known is None or known.until <= _time()) and key not in self._asking:
            # In a context of its own: nothing of the round that happened to ask may stick to its log lines.
            self._asking[key] = asyncio.create_task(self._ask(key, config, scope), name="shape", context=Context())
        return known.read if known is not None else _ASKED

    async def settled(self) -> None:
        """Nobody is being asked; never raises."""
        await asyncio.gather(*self._asking.values(), return_exceptions=True)

    async def close(self) -> None:
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, key: bytes, config: Mapping[str, Any], scope: Scope) -> None:
        try:
            read: ShapeRead = await scope.shape(config)
        except ProviderError as error:
            read = ShapeUnknown(without_secrets(str(error)))
        except Exception as error:
            with logs.hiding(secret_values(config)):
                _log.exception("provider raised an unexpected error", scope=scope.name, call="shape")
            read = ShapeUnknown(f"unexpected {type(error).__name__}")
        finally:
            self._asking.pop(key, None)
        if len(self._answers) >= _MOST:
            self._answers.clear()
        good = GOOD_FOR if isinstance(read, Shape) else BAD_FOR
        self._answers[key] = _Answer(read, _time() + good)


def _time() -> float:
    return asyncio.get_running_loop().time()
