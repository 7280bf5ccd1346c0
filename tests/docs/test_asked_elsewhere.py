"""What is said to be granted here: each row has a command that exists, and a test that exists."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.cli.test_docs import options_of
from tests.docs.pages import ROOT
from tests.docs.test_features import known_in

PAGE = (ROOT / "docs" / "asked-elsewhere.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")] for line in PAGE.splitlines() if re.match(r"\| \S+#", line)
]


def test_there_are_rows() -> None:
    assert len(ROWS) > 15
    assert all(len(row) == 4 for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_names_a_test_that_exists(row: list[str]) -> None:
    found = re.findall(r"\[(\S+)\]\(\.\./tests/(\S+)\)", row[3])
    assert found
    assert [name for name, file in found if name not in known_in(file)] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_has_a_command_that_exists(row: list[str]) -> None:
    (text,) = re.findall(r"^`(.+?)`", row[2])
    program, command, *rest = shlex.split(text)
    assert program in {"nodewright", "kubectl"}
    for file in (word for word in rest if word.startswith("examples/")):
        assert (ROOT / file).is_file()
    if program == "nodewright":
        given = {word.partition("=")[0] for word in rest if word.startswith("-")}
        assert given - options_of(command) == set()


def test_a_wrong_command_would_be_found() -> None:
    assert "--no-such-option" not in options_of("plan")
    with pytest.raises(ModuleNotFoundError):
        options_of("no_such_command")
