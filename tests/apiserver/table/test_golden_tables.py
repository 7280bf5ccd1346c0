"""Tables of every kind, compared with those that a kube-apiserver 1.36 rendered of the same objects.

`tables.json` has a plain object or two of each kind, `more-tables.json` the states that change what is shown.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from nodewright.apiserver import table
from nodewright.apiserver.store.builtin_kinds import builtin_kinds
from nodewright.apiserver.values import Column, Resource

GOLDEN = Path(__file__).parent / "golden"
TABLES = [
    *json.loads((GOLDEN / "tables.json").read_text(encoding="utf-8")),
    *json.loads((GOLDEN / "more-tables.json").read_text(encoding="utf-8")),
]
ROWS = [(golden, row) for golden in TABLES for row in golden["rows"]]
WIDGET_COLUMNS = (
    Column("Size", "integer", ".spec.size"),
    Column("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
    Column("Tags", "string", ".spec.tags", priority=1),
    Column("When", "date", ".spec.when"),
    Column("Age", "date", ".metadata.creationTimestamp"),
)


def resource_of(path: str, obj: Any) -> Resource:
    group, _, version = obj["apiVersion"].rpartition("/")
    kind, plural = obj["kind"], path.rpartition("/")[2]
    custom = kind == "Widget"
    columns = WIDGET_COLUMNS if custom else ()
    return Resource(
        group, version, kind, plural, plural, f"{kind}List", "namespaces/" in path, columns=columns, builtin=not custom
    )


@pytest.mark.parametrize(("golden", "row"), ROWS, ids=[f"{r['object']['kind']}-{r['cells'][0]}" for _, r in ROWS])
def test_an_object_is_shown_as_the_real_server_shows_it(golden: Any, row: Any) -> None:
    resource = resource_of(golden["path"], row["object"])
    rendered = table.render(resource, [row["object"]], {"resourceVersion": "7"}, "Object", moment(row))
    columns = [{k: v for k, v in c.items() if k != "description"} for c in rendered["columnDefinitions"]]
    assert columns == golden["columns"]
    assert rendered["metadata"] == {"resourceVersion": "7"}
    shown = rendered["rows"][0]
    assert shown["cells"] == row["cells"]
    assert [type(cell) for cell in shown["cells"]] == [type(cell) for cell in row["cells"]]
    assert shown["object"] == row["object"]
    assert shown.get("conditions") == row.get("conditions")
    assert all(c["description"] for c in rendered["columnDefinitions"])


def moment(row: Any) -> datetime:
    return datetime.fromisoformat(row["now"])


def test_every_built_in_kind_was_compared() -> None:
    compared = {(row["object"]["apiVersion"], row["object"]["kind"]) for _, row in ROWS}
    known = {(resource.api_version, resource.kind) for resource, _ in builtin_kinds()}
    assert known - compared == set()
