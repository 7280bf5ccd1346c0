"""A controller process with views of its own: each kind lags by itself, never goes back, and a restart reads anew."""

from __future__ import annotations

from controllers.kernel.refs import Kind
from tests.builders.loop import plan_for
from tests.builders.view import KINDS, FakeView
from tests.builders.world import World


class Process:
    """Stale but monotone: what it has seen once it never unsees."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.positions: dict[Kind, int] = {}
        self.restart()

    def restart(self) -> None:
        """It died and lists everything as it is."""
        self.positions = {kind: self.world.length(kind) for kind in KINDS.values()}

    def catch_up(self, kind: Kind, writes: int) -> None:
        """So many more writes of ``kind`` arrive by its watch."""
        self.positions[kind] = min(self.positions[kind] + writes, self.world.length(kind))

    def view(self) -> FakeView:
        return self.world.view_at(self.positions)

    def round(self, kind: Kind, name: str, limit: int | None = None) -> bool:
        """One round on its own view; ``limit``: it dies after so many actions (and starts again)."""
        finished = self.world.run(plan_for(self.view(), kind, name), limit)
        if limit is not None and not finished:
            self.restart()
        return finished
