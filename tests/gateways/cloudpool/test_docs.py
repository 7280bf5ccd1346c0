"""docs/tasks/cloudpool-proxy.md: each defect of the original has tests by its number, where the table says."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "tasks" / "cloudpool-proxy.md"
FILES = (
    *sorted(ROOT.glob("tests/gateways/cloudpool/test_*.py")),
    *sorted(ROOT.glob("tests/controllers/cloudpool/*.py")),
)


def told() -> dict[int, set[str]]:
    rows = re.findall(r"^\| (\d+) \|.*\| ([^|]+) \|$", PAGE.read_text(), re.MULTILINE)
    return {int(number): set(re.findall(r"`([^`]+)`", files)) for number, files in rows}


def there() -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for file in FILES:
        for number in re.findall(r"^(?:async )?def test_defect_(\d\d)_", file.read_text(), re.MULTILINE):
            found.setdefault(int(number), set()).add(str(file.relative_to(ROOT / "tests")))
    return found


def test_the_table_names_each_defect_and_where_its_tests_are() -> None:
    assert set(told()) == set(range(1, 25))
    assert told() == there()
