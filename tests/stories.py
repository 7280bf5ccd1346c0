"""How far a reader has to walk to follow one story: the files of the decision layer whose functions ran."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
LAYER = "controllers"


class Walk:
    """``files`` and ``functions`` that ran, by path below the repository."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.functions: set[tuple[str, str]] = set()
        self._known: dict[str, str] = {}

    def __call__(self, story: Callable[[], object]) -> Walk:
        """Play ``story``; what it only imports does not count, nor do comprehensions and lambdas as functions."""
        before = sys.getprofile()
        sys.setprofile(self._seen)
        try:
            story()
        finally:
            sys.setprofile(before)
        return self

    def _seen(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event != "call":
            return
        path = self._known.get(frame.f_code.co_filename)
        if path is None:
            path = self._known[frame.f_code.co_filename] = _below(frame.f_code.co_filename)
        name = frame.f_code.co_qualname.removesuffix(".<locals>")
        if path and "<" not in frame.f_code.co_name:
            self.files.add(path)
            self.functions.add((path, name))


def _below(filename: str) -> str:
    path = Path(filename)
    if not path.is_relative_to(ROOT):
        return ""
    below = path.relative_to(ROOT)
    return below.as_posix() if below.parts[0] == LAYER else ""
