"""The annotations that make a set or a deployment a node group: read alike by validation and by the autoscaler."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_COUNT = re.compile(r"[0-9]{1,9}\Z")


class BoundsError(ValueError):
    """``field`` is the annotation."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


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


def _count(annotations: Mapping[str, Any], key: str) -> int:
    value = annotations.get(key, "0")
    if not isinstance(value, str) or not _COUNT.match(value):
        raise BoundsError(key, f"{value!r} is not a count")
    return int(value)
