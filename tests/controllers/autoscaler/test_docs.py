"""docs/autoscaler.md names every reason for which a Node stays, and none that is not there."""

from __future__ import annotations

import re
from pathlib import Path

from controllers.autoscaler.shrinking import Needed

PAGE = Path(__file__).parents[3] / "docs" / "autoscaler.md"


def test_the_table_is_complete() -> None:
    table = PAGE.read_text().partition("| a Node that stays |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, re.M)) == sorted(each.value for each in Needed)
