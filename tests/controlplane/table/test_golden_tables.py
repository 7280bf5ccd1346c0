"""Tables of every kind, compared with those that a kube-apiserver 1.36 rendered of the same objects."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from nodewright.controlplane import table
from nodewright.controlplane.values import Column, Resource

TABLES = json.loads((Path(__file__).parent / "golden/tables.json").read_text())
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


@pytest.mark.parametrize("golden", TABLES, ids=[t["path"].rpartition("/")[2] for t in TABLES])
def test_a_kind_is_shown_as_the_real_server_shows_it(golden: Any) -> None:
    resource = resource_of(golden["path"], golden["rows"][0]["object"])
    for row in golden["rows"]:
        now = datetime.fromisoformat(row["now"])
        rendered = table.render(resource, [row["object"]], {"resourceVersion": "7"}, "Object", now)
        columns = [{k: v for k, v in c.items() if k != "description"} for c in rendered["columnDefinitions"]]
        assert columns == golden["columns"]
        shown = rendered["rows"][0]
        assert shown["cells"] == row["cells"]
        assert shown["object"] == row["object"]
        assert shown.get("conditions") == row.get("conditions")
        assert all(c["description"] for c in rendered["columnDefinitions"] if resource.builtin)
