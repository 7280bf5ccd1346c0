"""``nodewright simulate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nodewright.cli.exits import FAILED
from nodewright.cli.screen import say

if TYPE_CHECKING:
    from nodewright.sim.report import Summary
    from nodewright.sim.soak import Report

HELP = """Run random schedules of all controllers on a virtual clock, with crashes, stale views and lost events.

Every schedule follows from its seed; a failing one prints its trace. With --soak one large cluster lives through a week
in which everything goes wrong that does in one. Exit code 0: no rule was broken; 1: one was.
"""
TRACE_TAIL = 60


def command(
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="N", min=1, max=10_000_000, help="How many schedules.")
    ] = 1000,
    first_seed: Annotated[
        int, typer.Option("--first-seed", metavar="N", min=0, help="Seed of the first; the others follow.")
    ] = 0,
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=0, help="Processes; 0: one per core.")] = 0,
    soak: Annotated[bool, typer.Option("--soak", help="One large cluster for --days, in place of schedules.")] = False,
    machines: Annotated[
        int, typer.Option("--machines", metavar="N", min=3, max=10_000, help="Machines of the --soak.")
    ] = 1000,
    days: Annotated[int, typer.Option("--days", metavar="N", min=1, max=365, help="Days of the --soak.")] = 7,
) -> None:
    if soak:
        _live(machines, days, first_seed)
    else:
        _schedules(seeds, first_seed, workers)


def _live(machines: int, days: int, seed: int) -> None:
    from nodewright.cli.progress import counting  # noqa: PLC0415
    from nodewright.sim.soak import Options, Soak  # noqa: PLC0415

    with counting("days", days) as tell:
        report = Soak(Options(machines, days, seed)).run(lambda passed: tell(passed, ""))
    for line in _table(report.rows()) + _end_of(report):
        say(line)
    if report.breach:
        raise typer.Exit(FAILED)


def _end_of(report: Report) -> list[str]:
    if not report.breach:
        return []
    options = report.options
    flags = f"--machines {options.machines} --days {options.days} --first-seed {options.seed}"
    return ["", *report.trace[-TRACE_TAIL:], f"again: nodewright simulate --soak {flags}"]


def _schedules(seeds: int, first_seed: int, workers: int) -> None:
    from nodewright.cli.progress import counting  # noqa: PLC0415
    from nodewright.sim import report  # noqa: PLC0415

    with counting("schedules", seeds) as tell:
        summary = report.run(
            report.Options(seeds=seeds, first_seed=first_seed, workers=workers),
            lambda done, result: tell(done, "a rule was broken" if result.breach else ""),
        )
    for line in _lines(summary):
        say(line)
    if summary.failed:
        raise typer.Exit(FAILED)


def _lines(summary: Summary) -> list[str]:
    lines = _table(summary.rows())
    for result in sorted(summary.failed, key=lambda r: r.seed):
        again = f"nodewright simulate --seeds 1 --first-seed {result.seed}"
        lines += ["", result.summary(), f"again: {again}"]
    return lines


def _table(rows: list[tuple[str, str]]) -> list[str]:
    width = max(len(name) for name, _ in rows)
    return [f"{name.ljust(width)}  {value}" for name, value in rows]
