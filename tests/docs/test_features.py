"""The table of features is whole, current, and every test that it names exists."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

import pytest

from hack.features import PAGE, Feature, features, page
from tests.docs.pages import ROOT

COMPARED, ALONE = features("table"), features("alone")
ALL = COMPARED + ALONE


def _named(feature: Feature) -> str:
    return f"{feature.row or 'alone'} {feature.name}"


@cache
def known_in(file: str) -> frozenset[str]:
    """Tests of a file as the table writes them: functions without ``test_``, ``Class.method``, and whole classes."""
    path = ROOT / "tests" / file
    return frozenset(_tests(ast.parse(path.read_text()).body)) if path.is_file() else frozenset()


def _tests(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    for one in body:
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name.startswith("test_"):
            yield prefix + one.name.removeprefix("test_")
        elif isinstance(one, ast.ClassDef) and one.name.startswith("Test"):
            yield one.name
            yield from _tests(one.body, f"{one.name}.")


def problems(feature: Feature) -> list[str]:
    found = [f"no test {name} in tests/{file}" for file, name in feature.tests if name not in known_in(file)]
    if feature.here not in ("Yes", "Partly", "No"):
        found.append(f"{feature.here!r} is none of Yes, Partly and No")
    if feature.here != "No" and not feature.tests:
        found.append("nothing shows it")
    if feature.here != "Yes" and not feature.how:
        found.append("it does not say what is missing, or why")
    if feature.here == "No" and not feature.how.startswith(("out of scope", "not yet")):
        found.append("it does not say whether it is out of scope or not there yet")
    return found


@pytest.mark.parametrize("feature", ALL, ids=_named)
def test_a_feature_names_tests_that_exist(feature: Feature) -> None:
    assert problems(feature) == []


def test_a_wrong_row_would_be_found() -> None:
    kernel = "controllers/kernel/test_victims.py"
    assert problems(Feature("1", "x", "Yes", "", ((kernel, "order"),))) == []
    assert problems(Feature("1", "x", "Yes", "", ((kernel, "nothing_of_this_name"),)))
    assert problems(Feature("1", "x", "Yes", "", (("no/such/file.py", "order"),)))
    assert problems(Feature("1", "x", "Yes", "", ()))
    assert problems(Feature("1", "x", "Partly", "", ((kernel, "order"),)))
    assert problems(Feature("1", "x", "Maybe", "why", ((kernel, "order"),)))
    assert problems(Feature("1", "x", "No", "nobody asked", ()))


def test_all_rows_of_the_comparison_are_there_in_order() -> None:
    assert [feature.row for feature in COMPARED] == [str(number) for number in range(1, 84)]
    assert len(ALONE) == 29
    assert len({feature.name for feature in COMPARED}) == len(COMPARED)


def test_the_page_is_what_the_rows_say() -> None:
    assert PAGE.read_text() == page()
