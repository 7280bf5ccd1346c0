"""The differences that are known and kept, as `docs/embedded-differences.md` lists them for its readers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "embedded-differences.md"
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Known:
    """A row of the page. ``cases`` and ``parts`` are patterns as file names have them (``*``)."""

    name: str
    cases: tuple[str, ...]
    parts: tuple[str, ...]

    def covers(self, case: str, part: str) -> bool:
        return any(fnmatchcase(case, one) for one in self.cases) and any(fnmatchcase(part, one) for one in self.parts)


@cache
def known() -> tuple[Known, ...]:
    """The rows of the page's table: name, requests, parts of the answer, reason."""
    rows = []
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == 4 and _CODE.search(cells[1]):
            rows.append(Known(cells[0], tuple(_CODE.findall(cells[1])), tuple(_CODE.findall(cells[2]))))
    return tuple(rows)


def of(case: str, part: str) -> list[Known]:
    """The rows that explain a difference; none if it must not be."""
    return [row for row in known() if row.covers(case, part)]
