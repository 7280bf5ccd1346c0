"""Path elements: how one step into an object is written in `fieldsV1` and in messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import orjson

from nodewright.apiserver.values import Obj


def value_element(value: Any) -> str:
    """Write the step to an item of a `set` list."""
    return f"v:{orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()}"


def key_element(item: Any, keys: Sequence[str], defaults: Obj) -> str | None:
    """Write the step to an item of a `map` list; None for an item that states none of its keys."""
    if not isinstance(item, dict):
        return None
    stated: Obj = {}
    for key in keys:
        value = item.get(key, defaults.get(key))
        if value is not None:
            stated[key] = value
    if not stated:
        return None
    return f"k:{orjson.dumps(stated, option=orjson.OPT_SORT_KEYS).decode()}"


def display(path: Sequence[str]) -> str:
    """Write a path as messages do: `.spec.ports[port=80,protocol="TCP"].name`."""
    return "".join(map(_display_one, path))


def _display_one(element: str) -> str:
    kind, _, rest = element.partition(":")
    if kind == "f":
        return f".{rest}"
    if kind == "k":
        keys: Obj = json.loads(rest)
        return "[" + ",".join(f"{name}={_scalar(value)}" for name, value in sorted(keys.items())) + "]"
    if kind == "v":
        return f"[={_scalar(json.loads(rest))}]"
    return f"[{rest}]"


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
