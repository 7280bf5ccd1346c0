"""How a simulated cloud remembers its hosts: what a journal has to do."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from providers.simulated.hosts import SimulatedHost


class Journal(Protocol):
    """Called with every change of a host before the call that made it answers; ``remembered`` is read once at start."""

    def remembered(self) -> tuple[SimulatedHost, ...]: ...

    def put(self, host: SimulatedHost) -> None: ...

    def forget(self, host: SimulatedHost) -> None: ...


@runtime_checkable
class SharedJournal(Protocol):
    """A journal that several processes write to."""

    def alone(self) -> AbstractContextManager[None]:
        """Nobody else writes meanwhile."""

    def news(self) -> Iterable[SimulatedHost | str]:
        """What others have written since the last look: a host as it is, or the id of one that is gone."""
