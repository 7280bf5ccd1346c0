"""``nodewright simulate``."""

from __future__ import annotations

from typing import Annotated

import typer

from nodewright.cli.exits import FAILED

HELP = """Run random schedules of all controllers on a virtual clock, with crashes, stale views and lost events.

Every schedule follows from its seed; a failing one prints its story. Exit code 0: no rule was broken; 1: one was.
"""


def command(
    schedules: Annotated[int, typer.Option("--schedules", min=1, max=1_000_000, help="How many schedules.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the first schedule; the others follow it.")] = 1,
    story: Annotated[bool, typer.Option("--story", help="Print what happened in every schedule, not only in a failing one.")] = False,
) -> None:
    from nodewright.sim import report  # noqa: PLC0415

    if not report.run(report.Options(schedules=schedules, seed=seed, story=story)):
        raise typer.Exit(FAILED)
