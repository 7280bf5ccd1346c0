"""docs/scheduling.md names every predicate and every reason, and none that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from controllers.scheduling.drainability import Blocking
from controllers.scheduling.refusals import Predicate
from controllers.scheduling.removal import Staying

PAGE = Path(__file__).parents[3] / "docs" / "scheduling.md"
TABLES = {"predicate": Predicate, "a pod that blocks": Blocking, "a Node that is kept": Staying}


@pytest.mark.parametrize("title", TABLES)
def test_the_table_is_complete(title: str) -> None:
    table = PAGE.read_text().partition(f"| {title} |")[2].partition("\n\n")[0]
    named = re.findall(r"^\| `(\w+)` \|", table, re.M)
    assert sorted(named) == sorted(each.value for each in TABLES[title])


def test_predicates_stand_in_the_order_in_which_they_are_asked() -> None:
    text = PAGE.read_text()
    places = [text.index(f"| `{each.value}` |") for each in Predicate]
    assert places == sorted(places)
