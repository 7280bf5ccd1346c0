"""The threat model and the page of promises name tests that exist."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT

PAGES = ("threats.md", "promises.md")
HEADERS = ("| they try", "| it is promised")


def rows(page: str) -> list[str]:
    lines = (ROOT / "docs" / page).read_text().splitlines()
    return [line for line in lines if line.startswith("| ") and not line.startswith(HEADERS)]


def named(page: str) -> list[tuple[str, str]]:
    return [found for row in rows(page) for found in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)]


NAMED = [found for page in PAGES for found in named(page)]


@pytest.mark.parametrize("page", PAGES)
def test_each_row_names_a_test(page: str) -> None:
    assert len(named(page)) == len(rows(page)) > 0


@pytest.mark.parametrize(("file", "name"), NAMED, ids=[name for _, name in NAMED])
def test_a_test_that_is_named_is_there(file: str, name: str) -> None:
    assert re.search(rf"^ *(async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE), f"{file} has no {name}"
