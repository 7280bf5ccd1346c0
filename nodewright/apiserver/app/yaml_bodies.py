"""Reading YAML that a stranger sent: by the loader for all text of others."""

from __future__ import annotations

from typing import Any

from api import yamltext

_BOUNDS = yamltext.Bounds(size=4 << 20, depth=200, values=200_000)
"""The size is that of a request's body, the depth that of a JSON body."""


def load(content: bytes) -> Any:
    """Read one document. Raises ValueError with a text that says what is wrong, and where."""
    return yamltext.load(content, _BOUNDS)
