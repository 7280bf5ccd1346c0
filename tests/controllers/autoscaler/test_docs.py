"""The pages name every reason for which a Node stays, none that is not there, and every event."""

from __future__ import annotations

import re
from pathlib import Path

from controllers.autoscaler.scaledown.eligibility import Needed

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "autoscaler.md"


def test_the_table_is_complete() -> None:
    table = PAGE.read_text().partition("| a Node that stays |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, re.M)) == sorted(each.value for each in Needed)


def test_every_event_is_on_the_page_for_users() -> None:
    source = "".join(path.read_text() for path in (ROOT / "controllers" / "autoscaler").glob("*.py"))
    said = set(re.findall(r'(?<!\[)"(?:Normal|Warning)",\s*"(\w+)"', source)) | {
        "FailedToScaleUpGroup",
        "ScaleDownEmpty",
    }
    assert len(said) > 6, "the events are not found any more"
    page = (ROOT / "docs" / "tasks" / "autoscale.md").read_text()
    assert sorted(name for name in said if f"`{name}`" not in page) == []
