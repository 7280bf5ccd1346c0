"""The columns of custom resources, compared with what a kube-apiserver 1.36 made of the same paths and values."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nodewright.apiserver import table
from nodewright.apiserver.values import Column, Obj, Resource

GOLDEN = json.loads((Path(__file__).parent / "golden/paths.json").read_text(encoding="utf-8"))
TYPES = ("string", "integer", "number", "boolean", "date")
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def cells_resource(*columns: Column) -> Resource:
    return Resource("example.com", "v1", "Cell", "cells", "cell", "CellList", True, columns=columns, builtin=False)


def row_of(obj: Obj, *columns: Column) -> list[Any]:
    rendered = table.render(cells_resource(*columns), [obj], {}, "None", NOW)
    cells: list[Any] = rendered["rows"][0]["cells"]
    assert len(cells) == len(rendered["columnDefinitions"])
    return cells


@pytest.mark.parametrize("path", GOLDEN["cells"])
def test_a_path_fills_columns_of_all_types_as_the_real_server_does(path: str) -> None:
    resource = cells_resource(*(Column(kind, kind, path) for kind in TYPES))
    now = datetime.fromisoformat(GOLDEN["now"])
    rendered = table.render(resource, [GOLDEN["object"]], {}, "None", now)
    name, *cells = rendered["rows"][0]["cells"]
    assert name == "c1"
    assert cells == GOLDEN["cells"][path]
    assert [type(cell) for cell in cells] == [type(cell) for cell in GOLDEN["cells"][path]]
    assert len(rendered["columnDefinitions"]) == 1 + len(cells)


def test_without_columns_there_are_name_and_age() -> None:
    obj = {"kind": "Cell", "metadata": {"name": "c", "creationTimestamp": "2026-11-20T11:58:30Z"}}
    rendered = table.render(cells_resource(), [obj], {}, "None", NOW)
    assert rendered["rows"][0]["cells"] == ["c", "90s"]
    assert [(c["name"], c["type"], c["format"]) for c in rendered["columnDefinitions"]] == [
        ("Name", "string", "name"),
        ("Age", "date", ""),
    ]


def test_a_column_is_described_as_its_definition_says() -> None:
    told = Column("Told", "integer", ".spec.n", "How many.", "int32", 1)
    untold = Column("Untold", "string", ".spec.s")
    definitions = table.render(cells_resource(told, untold), [], {}, "", NOW)["columnDefinitions"]
    assert definitions[1:] == [
        {"name": "Told", "type": "integer", "format": "int32", "description": "How many.", "priority": 1},
        {
            "name": "Untold",
            "type": "string",
            "format": "",
            "description": "Custom resource definition column (in JSONPath format): .spec.s",
            "priority": 0,
        },
    ]


def test_columns_end_before_the_first_path_that_is_none() -> None:
    columns = (Column("A", "string", ".spec.a"), Column("B", "string", ".spec.b["), Column("C", "string", ".spec.c"))
    assert row_of({"metadata": {"name": "c"}, "spec": {"a": "1", "b": "2", "c": "3"}}, *columns) == ["c", "1"]


@pytest.mark.parametrize(
    ("kind", "value", "cell"),
    [
        ("integer", 9.9, 9),
        ("integer", -9.9, -9),
        ("integer", 1e300, -(1 << 63)),
        ("integer", True, None),
        ("integer", "5", None),
        ("number", 2.0, 2),
        ("number", False, None),
        ("boolean", 0, None),
        ("date", "2026-11-20T12:00:01Z", "0s"),
        ("date", "2026-11-20T12:05:00Z", "<invalid>"),
        ("date", "2026-11-20T10:30:00+00:00", "90m"),
        ("date", "2026-11-20", "<invalid>"),
        ("date", "", "<unknown>"),
        ("date", 5, None),
        ("string", [1.0, 1e21, 1e-7, {"b": "<", "a": "\u2028"}], '[1,1e+21,1e-7,{"a":"\\u2028","b":"\\u003c"}]'),
        ("nonsense", "x", None),
    ],
)
def test_a_value_of_another_type_leaves_the_cell_empty(kind: str, value: Any, cell: Any) -> None:
    shown = row_of({"metadata": {"name": "c"}, "v": value}, Column("V", kind, ".v"))[1]
    assert shown == cell
    assert type(shown) is type(cell)
