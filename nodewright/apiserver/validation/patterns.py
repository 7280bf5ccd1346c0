r"""Regular expressions of schemas: written for Go's RE2, run by the interpreter's `matches`.

That one (Rust's regex) has RE2's syntax and, as RE2, takes linear time: a pattern cannot stall the server. It differs
in that `\d`, `\w`, `\s` and `\b` mean Unicode there and ASCII in RE2, so these are written out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from api.remembered import remembered
from nodewright.apiserver.validation.interpreter import cel

_TOKEN: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]", re.DOTALL)
"""Escapes and whole character classes."""
_ASCII: Final = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}
_MATCHES: Final = cel.compile("text.matches(pattern)")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern of a schema; `portable` is the same without the shorthands that engines understand differently."""

    text: str
    portable: str

    def found_in(self, text: str) -> bool:
        """Tell whether the pattern matches anywhere in a text."""
        return bool(_MATCHES.execute({"text": text, "pattern": self.portable}))


@remembered(1024, longest=4096)
def compile_pattern(text: str) -> Pattern:
    """Read a pattern. Raises ValueError for what is none."""
    pattern = Pattern(text, _TOKEN.sub(_written_out, text))
    try:
        pattern.found_in("")
    except (ValueError, RuntimeError) as error:
        raise ValueError(f"pattern {text!r}: {error}") from error
    return pattern


def _written_out(match: re.Match[str]) -> str:
    token = match.group()
    if not token.startswith("["):
        return _escape(token)
    return "[" + re.sub(r"\\.", lambda inner: _in_class(inner.group()), token[1:], flags=re.DOTALL)


def _escape(token: str) -> str:
    letter = token[1]
    if letter.lower() in _ASCII:
        return f"[{'^' if letter.isupper() else ''}{_ASCII[letter.lower()]}]"
    return f"(?-u:{token})" if letter in "bB" else token


def _in_class(token: str) -> str:
    letter = token[1]
    if letter.lower() not in _ASCII:
        return token
    return _ASCII[letter] if letter.islower() else f"[^{_ASCII[letter.lower()]}]"
