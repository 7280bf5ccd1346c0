"""Writes ``docs/features.md`` from ``hack/features.yaml``: what Nodewright does, and what shows it.

``python -m hack.features --write`` writes the page, ``--check`` fails when what is committed differs. That every test
exists is a test of its own (``tests/docs/test_features.py``).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hack.reference import GENERATED, ROOT, table

SOURCE = ROOT / "hack" / "features.yaml"
PAGE = ROOT / "docs" / "features.md"
COLUMNS = ("feature", "here", "how, or why not", "shown by")

HEAD = f"""{GENERATED}# Features, and the tests that show them

What the controllers of this field do, row by row, and what Nodewright does of it. "Yes" is shown by the tests that are
named; "Partly" says what is missing; "No" says whether it is out of [scope](../SCOPE.md) or not there yet
([not-yet.md](not-yet.md)). The source is `hack/features.yaml`; a test proves that every test exists.

"""


@dataclass(frozen=True, slots=True)
class Feature:
    """``row`` numbers the rows of the comparison; "" for what none of the others has. ``tests``: (file, name) pairs."""

    row: str
    name: str
    here: str
    how: str
    tests: tuple[tuple[str, str], ...]


def features(section: str) -> tuple[Feature, ...]:
    # All scalars are text: "Yes" and "No" are words here.
    document = yaml.load(SOURCE.read_text(), Loader=yaml.BaseLoader)
    return tuple(_read(row) for row in document[section])


def _read(row: dict[str, Any]) -> Feature:
    tests = tuple((file, name) for file, names in row.get("tests", {}).items() for name in names)
    return Feature(row.get("row", ""), row["feature"], row["here"], row["how"], tests)


def page() -> str:
    compared, alone = features("table"), features("alone")
    return (
        HEAD
        + f"{_counts(compared)}\n\n"
        + table(("#", *COLUMNS), ((one.row, *_cells(one)) for one in compared))
        + "\n## What none of the others has\n\n"
        + f"{_counts(alone)}\n\n"
        + table(COLUMNS, (_cells(one) for one in alone))
    )


def _counts(rows: tuple[Feature, ...]) -> str:
    words = [row.here for row in rows]
    return f"Of {len(rows)}: {words.count('Yes')} Yes, {words.count('Partly')} Partly, {words.count('No')} No."


def _cells(feature: Feature) -> tuple[str, str, str, str]:
    return feature.name, feature.here, feature.how, ", ".join(_links(feature))


def _links(feature: Feature) -> Iterator[str]:
    for file, name in feature.tests:
        yield f"[{name}](../tests/{file})"


def main() -> int:
    parser = argparse.ArgumentParser(description="Write or check the table of features.")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true")
    mode.add_argument("--check", action="store_true")
    if parser.parse_args().write:
        PAGE.write_text(page())
        return 0
    if PAGE.exists() and PAGE.read_text() == page():
        return 0
    print(f"not current, run `make generate`: {Path(PAGE).relative_to(ROOT)}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
