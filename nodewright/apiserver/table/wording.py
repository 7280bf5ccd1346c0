"""How times, selectors and lists are written in cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from nodewright.apiserver.values import Obj

NONE = "<none>"
UNKNOWN = "<unknown>"


def parse_time(text: Any) -> datetime | None:
    """Read an RFC 3339 time, which has a zone; None for what is none."""
    if not isinstance(text, str) or not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def since(text: Any, now: datetime) -> str:
    """Write the time that passed since a moment, `<unknown>` if there is no moment."""
    moment = parse_time(text)
    return UNKNOWN if moment is None else human_duration((now - moment).total_seconds())


def human_duration(seconds: float) -> str:
    """Write a span as kubectl does: two units at most, the finer one only while it matters."""
    total = int(seconds)
    if total < -1:
        return "<invalid>"
    if total < 120:
        return f"{max(total, 0)}s"
    minutes, hours = total // 60, total // 3600
    if minutes < 10:
        return _two(minutes, "m", total % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if hours < 24 * 8:
        return _two(days, "d", hours % 24, "h")
    if hours < 24 * 365 * 2:
        return f"{days}d"
    return _two(days // 365, "y", days % 365 if hours < 24 * 365 * 8 else 0, "d")


def _two(coarse: int, coarse_unit: str, fine: int, fine_unit: str) -> str:
    return f"{coarse}{coarse_unit}{fine}{fine_unit}" if fine else f"{coarse}{coarse_unit}"


def labels_text(labels: Any) -> str:
    """Write labels as `a=b,c=d` in order, `<none>` for none."""
    if not isinstance(labels, Mapping) or not labels:
        return NONE
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def selector_text(selector: Any) -> str:
    """Write a metav1.LabelSelector as text, `<none>` for one that is missing or empty."""
    if not isinstance(selector, Mapping):
        return NONE
    parts = {key: f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()}
    requirements = sorted(parts.items())
    for expression in selector.get("matchExpressions") or ():
        key = str(expression.get("key", ""))
        requirements.append((key, _requirement(key, expression)))
    return ",".join(written for _, written in sorted(requirements, key=lambda item: item[0])) or NONE


def _requirement(key: str, expression: Obj) -> str:
    values = ",".join(sorted(map(str, expression.get("values") or ())))
    match expression.get("operator"):
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "Exists":
            return key
        case _:
            return f"!{key}"


def joined(items: Iterable[Any]) -> str:
    """Write items with commas between them."""
    return ",".join(map(str, items))


def at(obj: Any, *path: str, default: Any = None) -> Any:
    """Give what lies at a path of keys, `default` if it is missing or null."""
    for key in path:
        if not isinstance(obj, Mapping):
            return default
        obj = obj.get(key)
    return default if obj is None else obj


def condition(obj: Obj, kind: str) -> Obj:
    """Give a condition of an object's status, {} if it has none of that type."""
    return next((c for c in at(obj, "status", "conditions", default=()) if c.get("type") == kind), {})


def age(obj: Obj, now: datetime) -> str:
    """Write how old an object is."""
    return since(at(obj, "metadata", "creationTimestamp"), now)


def name(obj: Obj) -> str:
    """Give an object's name."""
    named = (obj.get("metadata") or {}).get("name")
    return named if isinstance(named, str) else ""
