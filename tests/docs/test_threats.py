"""The threat model names tests that exist."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT

NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / "threats.md").read_text())


def test_each_row_of_the_threat_model_names_a_test() -> None:
    rows = [line for line in (ROOT / "docs" / "threats.md").read_text().splitlines() if line.startswith("| ")]
    rows = [row for row in rows if not row.startswith("| they try")]
    assert len(NAMED) == len(rows)


@pytest.mark.parametrize(("file", "name"), NAMED, ids=[name for _, name in NAMED])
def test_a_test_that_the_threat_model_names_is_there(file: str, name: str) -> None:
    assert re.search(rf"^ *(async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE), f"{file} has no {name}"
