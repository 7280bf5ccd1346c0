"""How the real server writes values into its messages: Go's %q and %v, and its JSON."""

from __future__ import annotations

from typing import Any, Final

import orjson

_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f"} | {
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def quote(text: str) -> str:
    """Write a string as Go's %q does."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_quoted, text)) + '"'


def _quoted(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def number(value: float) -> str:
    """Write a number as Go's %v does: 1e+21, 0.25, 3."""
    if isinstance(value, int):
        return str(value)
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    text = repr(value)
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        return text
    sign = "-" if exponent.startswith("-") else "+"
    return f"{mantissa.removesuffix('.0')}e{sign}{exponent.lstrip('+-').rjust(2, '0')}"


def value_text(value: Any) -> str:
    """Write a value as it stands behind "Invalid value:"."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return number(value)
        case str():
            return quote(value)
        case _:
            return compact_json(value)


def compact_json(value: Any) -> str:
    """Write JSON as Go's encoder does: sorted keys, no spaces, HTML characters escaped."""
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def go_value(value: Any) -> str:
    """Write a value as Go's %v does for nested data: map[a:1 b:[x y]]."""
    match value:
        case dict():
            return "map[" + " ".join(f"{key}:{go_value(child)}" for key, child in sorted(value.items())) + "]"
        case list():
            return "[" + " ".join(map(go_value, value)) + "]"
        case bool():
            return "true" if value else "false"
        case None:
            return "<nil>"
        case int() | float():
            return number(value)
        case _:
            return str(value)
