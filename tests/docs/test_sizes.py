"""No function grows beyond what fits on a screen, and nearly all are read at a glance."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.docs.pages import ROOT

PACKAGES = ["api", "controllers", "nodewright", "providers"]
LONGEST = 50
USUAL = 20
"""Lines that 95 of 100 functions have at most."""
GENERATED = "_pb2.py"


def lengths(package: str) -> Iterator[tuple[int, str]]:
    """Lines of each function, docstring included and decorators not, and where it is."""
    for path in sorted((ROOT / package).rglob("*.py")):
        if path.name.endswith(GENERATED):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                yield node.end_lineno - node.lineno + 1, f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"


@pytest.mark.parametrize("package", PACKAGES)
def test_no_function_is_longer_than_fifty_lines(package: str) -> None:
    """A command's options made the longest ones before they had classes."""
    assert [title for lines, title in lengths(package) if lines > LONGEST] == []


def test_ninety_five_of_a_hundred_functions_have_at_most_twenty_lines() -> None:
    """One alone may well be longer: shorten whatever gets better by it."""
    found = sorted(lines for package in PACKAGES for lines, _ in lengths(package))
    longer = sum(lines > USUAL for lines in found)
    assert found[int(len(found) * 0.95)] <= USUAL, f"{longer} of {len(found)} functions have over {USUAL} lines"
