"""Regular expressions of schemas: written for Go's RE2, run by Python's `re`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_END: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]|\$", re.DOTALL)
"""Escapes and character classes, to be skipped, and the bare `$`."""


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    r"""Compile a pattern with RE2's meaning: `$` is the very end of the text, `\d` and `\w` are ASCII, as is `\z`.

    Raises ValueError for what Python cannot read.
    """
    translated = _END.sub(_translate, pattern)
    try:
        return re.compile(translated, re.ASCII)
    except re.error as error:
        raise ValueError(f"pattern {pattern!r}: {error}") from error


def _translate(match: re.Match[str]) -> str:
    token = match.group()
    if token in ("$", r"\z"):
        return r"\Z"
    return token
