"""How are JSON values copied? Faster than `copy.deepcopy`, which keeps a memo that trees don't need."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def deep_copy(value: T) -> T:
    """Copy dicts and lists all the way down; leaves are shared, being immutable."""
    return _copy(value)  # type: ignore[no-any-return]


def _copy(value: Any) -> Any:
    if type(value) is dict:
        return {k: (_copy(v) if type(v) is dict or type(v) is list else v) for k, v in value.items()}
    if type(value) is list:
        return [(_copy(v) if type(v) is dict or type(v) is list else v) for v in value]
    return value
