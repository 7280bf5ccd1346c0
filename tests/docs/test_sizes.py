"""No function grows beyond what fits on a screen."""

from __future__ import annotations

import ast

import pytest

from tests.docs.pages import ROOT

LONGEST = 50
GENERATED = "_pb2.py"


@pytest.mark.parametrize("package", ["api", "controllers", "nodewright", "providers"])
def test_no_function_is_longer_than_fifty_lines(package: str) -> None:
    """Docstring included. A command's options made the longest ones before they had classes."""
    longer = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"
        for path in sorted((ROOT / package).rglob("*.py"))
        if not path.name.endswith(GENERATED)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > LONGEST
    ]
    assert longer == []
