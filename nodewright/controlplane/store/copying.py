"""How are JSON values copied? Faster than `copy.deepcopy`, which keeps a memo that trees don't need."""

from __future__ import annotations

from typing import Any, TypeVar

from nodewright.controlplane.values import ApiError

T = TypeVar("T")

MAX_DEPTH = 200
"""Levels of nesting that a body may have; each costs frames of every function that walks it later."""


def deep_copy(value: T) -> T:
    """Copy dicts and lists all the way down; leaves are shared, being immutable.

    Raises ApiError 400 for what is nested deeper than MAX_DEPTH.
    """
    return _copy(value, MAX_DEPTH)  # type: ignore[no-any-return]


def _copy(value: Any, depth: int) -> Any:
    if depth < 0:
        raise ApiError.bad_request(f"the body is nested more than {MAX_DEPTH} levels deep")
    below = depth - 1
    if type(value) is dict:
        return {k: (_copy(v, below) if type(v) is dict or type(v) is list else v) for k, v in value.items()}
    if type(value) is list:
        return [(_copy(v, below) if type(v) is dict or type(v) is list else v) for v in value]
    return value
