"""Which of several processes works. Today always this one; a Lease takes this place without touching anything else."""

from __future__ import annotations

import asyncio
from typing import Protocol


class Leadership(Protocol):
    """``acquire`` returns once this process may write; from the moment ``lost`` is set it must not any more."""

    @property
    def lost(self) -> asyncio.Event: ...

    async def acquire(self) -> None: ...

    async def release(self) -> None: ...


class AlwaysLeader:
    """For a single process."""

    def __init__(self) -> None:
        self._lost = asyncio.Event()

    @property
    def lost(self) -> asyncio.Event:
        return self._lost

    async def acquire(self) -> None:
        """At once."""

    async def release(self) -> None:
        """Nobody waits for it."""
