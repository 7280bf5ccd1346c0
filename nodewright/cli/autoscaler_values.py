"""Values of the autoscaler's options that have a form of their own; each raises CliError (usage) naming the option."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from nodewright.cli.exits import USAGE, CliError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from controllers.autoscaler.options import ConsolidationOptions, Range, Window
    from controllers.kernel.refs import Key
    from controllers.scaling.discovery import Discovery, Filter
    from controllers.scaling.node_group import Bounds


def discovery_of(nodes: Iterable[str], auto_discovery: Iterable[str]) -> Discovery:
    from controllers.scaling.discovery import Discovery  # noqa: PLC0415

    given = dict(_given(text) for text in nodes)
    return Discovery(given, tuple(_filter(text) for text in auto_discovery))


def _given(text: str) -> tuple[Key, Bounds]:
    from controllers.kernel.refs import Key  # noqa: PLC0415
    from controllers.scaling.node_group import Bounds  # noqa: PLC0415

    least, _, rest = text.partition(":")
    most, _, key = rest.partition(":")
    namespace, slash, name = key.partition("/")
    if not (least.isdigit() and most.isdigit() and namespace and slash and name):
        raise CliError(f"--nodes: {text!r} is not like 1:10:default/workers", code=USAGE)
    if int(most) < int(least):
        raise CliError(f"--nodes: in {text!r} the maximum is less than the minimum", code=USAGE)
    return Key(namespace, name), Bounds(int(least), int(most))


def _filter(text: str) -> Filter:
    from controllers.scaling.discovery import Filter  # noqa: PLC0415

    provider, colon, rest = text.partition(":")
    found = {key: value for key, _, value in (part.partition("=") for part in rest.split(",") if part)}
    if provider != "clusterapi" or not colon or not all(found.values()) or "" in found:
        raise CliError(
            f"--node-group-auto-discovery: {text!r} is not like clusterapi:namespace=default,pool=a", code=USAGE
        )
    namespace, cluster = found.pop("namespace", ""), found.pop("clusterName", "")
    return Filter(namespace, cluster, tuple(found.items()))


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
    return Window(schedule.strip(), time_of("--consolidation-window", duration))


def time_of(option: str, text: str) -> timedelta:
    from api.durations import parse_duration  # noqa: PLC0415

    try:
        return parse_duration(text)
    except ValueError as error:
        raise CliError(f"{option}: {error}", code=USAGE) from error
