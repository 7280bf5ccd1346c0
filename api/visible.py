"""Make text of others fit for a terminal: what would steer it is written out."""

from __future__ import annotations

import re
from typing import Final

_STEERING: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control characters (C0 but for tab and newline, DEL, C1), what turns the direction of writing, what has no width."""


def visible(text: str) -> str:
    r"""``text`` with each character that steers a terminal, or hides others, as ``\x1b`` or ``\u202e``."""
    return _STEERING.sub(_written_out, text)


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
