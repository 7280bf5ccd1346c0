"""The autoscaler's code is laid out as its pages say: ordered lists with reasons, named arguments, small values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from controllers.autoscaler.scaledown.eligibility import CHECKS
from controllers.autoscaler.scaledown.planner import METHODS

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "controllers" / "autoscaler"
STEPS = ("eligibility", "planner", "budgets", "actuation")
MOST_PARTS = 9
BY_NAME = ("observe", "cluster_state", "plan", "decision", *(f"scaledown/{step}" for step in STEPS))


def tree(name: str) -> ast.Module:
    return ast.parse((FOLDER / f"{name}.py").read_text())


def functions(module: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize(("name", "entries"), [("eligibility", CHECKS), ("planner", METHODS)])
def test_each_entry_of_an_ordered_list_has_its_reason_above_it(name: str, entries: tuple[object, ...]) -> None:
    text = (FOLDER / "scaledown" / f"{name}.py").read_text()
    listed = text[text.index("CHECKS:" if name == "eligibility" else "METHODS:") :]
    explained = re.findall(r"^    # .*\n    (\w+),$", listed, re.MULTILINE)
    assert explained == [getattr(entry, "__name__", "") for entry in entries]


def test_a_step_of_scale_down_looks_at_those_before_it_alone() -> None:
    """eligibility → budgets → planner, which plays both → actuation."""
    order = ("eligibility", "budgets", "planner", "actuation")
    for position, name in enumerate(order):
        later = [f"controllers.autoscaler.scaledown.{step}" for step in order[position + 1 :]]
        text = (FOLDER / "scaledown" / f"{name}.py").read_text()
        assert not [step for step in later if step in text], name


@pytest.mark.parametrize("name", BY_NAME)
def test_from_three_on_arguments_go_by_name(name: str) -> None:
    for function in functions(tree(name)):
        positional = [each.arg for each in function.args.args if each.arg not in {"self", "cls"}]
        assert len(positional) <= 2, f"{name}.{function.name}: {positional}"


@pytest.mark.parametrize("name", BY_NAME)
def test_values_have_few_parts_and_are_built_by_name(name: str) -> None:
    for node in ast.walk(tree(name)):
        if not isinstance(node, ast.ClassDef):
            continue
        parts = [each for each in node.body if isinstance(each, ast.AnnAssign)]
        assert len(parts) <= MOST_PARTS, f"{name}.{node.name}"
        if len(parts) > 5 and not node.bases:
            assert "kw_only=True" in "".join(map(ast.unparse, node.decorator_list)), f"{name}.{node.name}"


def test_every_file_that_the_pages_name_is_there() -> None:
    for page in ("ARCHITECTURE.md", "docs/autoscaler.md"):
        text = (ROOT / page).read_text()
        table = text[text.index("in `controllers/autoscaler/`") :].partition("\n\n")[0]
        named = re.findall(r"`([\w/]+\.py)`", table)
        assert len(named) >= 8, page
        assert not [file for file in named if not (FOLDER / file).is_file()], page
