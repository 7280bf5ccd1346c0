"""The annotations that make a set or a deployment a node group: read alike by validation and by the autoscalers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from api import names
from api.durations import parse_duration

_COUNT = re.compile(r"[0-9]{1,9}\Z")


class AnnotationError(ValueError):
    """``field`` is the annotation."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class BoundsError(AnnotationError):
    """Faults in the bounds of a node group."""


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """What one node group wants otherwise than the autoscaler's own options say. None: it says nothing of it."""

    utilization_threshold: float | None = None
    gpu_utilization_threshold: float | None = None
    unneeded_time: timedelta | None = None
    unready_time: timedelta | None = None
    provision_time: timedelta | None = None
    zero_or_max: bool | None = None
    ignore_daemon_sets: bool | None = None


def node_group_bounds(annotations: Mapping[str, Any], keys: tuple[str, str]) -> tuple[int, int] | None:
    """Minimum and maximum by the two ``keys`` of a family; None if neither is there. Raises BoundsError.

    Without a minimum it is 0, as for the Cluster Autoscaler. A minimum alone is a mistake: it would not be a group.
    """
    low, high = keys
    if low not in annotations and high not in annotations:
        return None
    if high not in annotations:
        _count(annotations, low)
        raise BoundsError(high, f"is required beside {low}")
    smallest, largest = _count(annotations, low), _count(annotations, high)
    if smallest > largest:
        raise BoundsError(low, f"{smallest} is more than the maximum, {largest}")
    return smallest, largest


def node_group_options(annotations: Mapping[str, Any]) -> tuple[GroupOptions, tuple[AnnotationError, ...]]:
    """Of both families, ours first; and what is wrong. A faulty one counts as none, one that nobody knows is let be."""
    requested: dict[str, Any] = {}
    faults = []
    for prefix in names.AUTOSCALING_OPTIONS_PREFIXES:
        for key in sorted(each for each in annotations if each.startswith(prefix)):
            field, parse = _OPTIONS.get(key.removeprefix(prefix).lower(), ("", str))
            if not field or field in requested:
                continue
            try:
                requested[field] = parse(annotations[key])
            except (ValueError, TypeError, AttributeError):
                faults.append(AnnotationError(key, f"{annotations[key]!r} is not {_WANTED[parse]}"))
    return GroupOptions(**requested), tuple(faults)


def _count(annotations: Mapping[str, Any], key: str) -> int:
    value = annotations.get(key, "0")
    if not isinstance(value, str) or not _COUNT.match(value):
        raise BoundsError(key, f"{value!r} is not a count")
    return int(value)


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError(text)
    return value


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


_WANTED: Mapping[Callable[[str], Any], str] = {
    _share: "a share between 0 and 1",
    _truth: "true or false",
    parse_duration: "a duration like 90s, 10m or 1h30m",
}
_OPTIONS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "scaledownutilizationthreshold": ("utilization_threshold", _share),
    "scaledowngpuutilizationthreshold": ("gpu_utilization_threshold", _share),
    "scaledownunneededtime": ("unneeded_time", parse_duration),
    "scaledownunreadytime": ("unready_time", parse_duration),
    "maxnodeprovisiontime": ("provision_time", parse_duration),
    "zeroormaxnodescaling": ("zero_or_max", _truth),
    "ignoredaemonsetsutilization": ("ignore_daemon_sets", _truth),
}
"""By the last part of the annotation, in lower case."""
