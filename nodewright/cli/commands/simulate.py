"""``nodewright simulate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nodewright.cli.exits import FAILED

if TYPE_CHECKING:
    from nodewright.sim.report import Summary

HELP = """Run random schedules of all controllers on a virtual clock, with crashes, stale views and lost events.

Every schedule follows from its seed; a failing one prints its story. Exit code 0: no rule was broken; 1: one was.
"""


def command(
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=10_000_000, help="How many schedules.")] = 1000,
    first_seed: Annotated[int, typer.Option("--first-seed", min=0, help="Seed of the first; the others follow.")] = 0,
    workers: Annotated[int, typer.Option("--workers", min=0, help="Processes; 0: one per core.")] = 0,
) -> None:
    from nodewright.cli.progress import counting  # noqa: PLC0415
    from nodewright.sim import report  # noqa: PLC0415

    with counting("schedules", seeds) as tell:
        summary = report.run(
            report.Options(seeds=seeds, first_seed=first_seed, workers=workers),
            lambda done, result: tell(done, "a rule was broken" if result.breach else ""),
        )
    for line in _lines(summary):
        typer.echo(line)
    if summary.failed:
        raise typer.Exit(FAILED)


def _lines(summary: Summary) -> list[str]:
    rows = summary.rows()
    width = max(len(name) for name, _ in rows)
    lines = [f"{name.ljust(width)}  {value}" for name, value in rows]
    for result in sorted(summary.failed, key=lambda r: r.seed):
        again = f"nodewright simulate --seeds 1 --first-seed {result.seed}"
        lines += ["", result.told(), f"again: {again}"]
    return lines
