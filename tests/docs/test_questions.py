"""The questions of ARCHITECTURE.md: each file that an answer names is there and has what to look for."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT

HEADING = "## Questions of a newcomer"
ROW = re.compile(r"^\| (?P<question>[^|]+\?) \| (?P<answer>[^|]+) \| (?P<where>[^|]+) \|$", re.MULTILINE)
WHERE = re.compile(r"`(?P<path>[\w/.]+)`: `(?P<what>\w+)`")


def questions() -> dict[str, list[tuple[str, str]]]:
    page = (ROOT / "ARCHITECTURE.md").read_text().partition(HEADING)[2]
    return {row["question"]: WHERE.findall(row["where"]) for row in ROW.finditer(page)}


def test_there_are_at_least_six_questions_with_an_answer_each() -> None:
    found = questions()
    assert len(found) >= 6
    assert [question for question, places in found.items() if not places] == []


@pytest.mark.parametrize(
    ("path", "what"), sorted({place for places in questions().values() for place in places}), ids=lambda part: part
)
def test_an_answer_is_where_it_is_said_to_be(path: str, what: str) -> None:
    file = ROOT / path
    assert file.is_file(), f"{path} is gone: ARCHITECTURE.md names it"
    assert re.search(rf"\b{what}\b", file.read_text()), f"{path} has no {what}"


def test_the_house_names_the_folders_that_are_there() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    named = re.findall(
        r"^\| `((?:api|controllers|nodewright|providers|deploy|crds|hack)[\w/]*)/` \|", page, re.MULTILINE
    )
    assert len(named) >= 12
    assert [folder for folder in named if not (ROOT / folder).is_dir()] == []
