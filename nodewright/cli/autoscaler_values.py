"""Values of the autoscaler's options that have a form of their own; each raises CliError (usage) naming the option."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.options import duration_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from controllers.autoscaler.options import ConsolidationOptions, Range, Window


def range_of(option: str, text: str) -> Range:
    from controllers.autoscaler.options import Range  # noqa: PLC0415

    least, _, most = text.partition(":")
    if not (least.isdigit() and most.isdigit()) or int(most) < int(least):
        raise CliError(f"{option}: {text!r} is not like 0:100", code=USAGE)
    return Range(int(least), int(most))


def consolidation_of(enabled: bool, threshold: float, *, windows: Iterable[str]) -> ConsolidationOptions:
    from controllers.autoscaler.options import ConsolidationOptions  # noqa: PLC0415

    if not 0 < threshold <= 1:
        raise CliError("--consolidation-threshold: must be more than 0 and at most 1", code=USAGE)
    return ConsolidationOptions(enabled, threshold, tuple(map(_window, windows)))


def _window(text: str) -> Window:
    from api.schedules import ScheduleError, check_schedule  # noqa: PLC0415
    from controllers.autoscaler.options import Window  # noqa: PLC0415

    schedule, equals, duration = text.rpartition("=")
    if not equals:
        raise CliError(f"--consolidation-window: {text!r} is not like '0 22 * * mon-fri=6h'", code=USAGE)
    try:
        check_schedule(schedule.strip())
    except ScheduleError as error:
        raise CliError(f"--consolidation-window: {error}", code=USAGE) from error
    return Window(schedule.strip(), duration_of("--consolidation-window", duration))
