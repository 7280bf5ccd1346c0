"""Objects against a schema that uses every keyword, compared with what a kube-apiserver 1.36 said about each."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from nodewright.apiserver.validation import Compiled, compile_schema

GOLDEN = Path(__file__).parent / "golden"
SCHEMA = json.loads((GOLDEN / "widgets.crd.json").read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
CASES = json.loads((GOLDEN / "create.json").read_text())


@pytest.fixture(scope="module")
def widgets() -> Compiled:
    return compile_schema(SCHEMA)


def widget(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}


def by_schema(case: dict[str, Any]) -> set[tuple[str, str, str]]:
    """The causes that come from the schema: those of the scale subresource have a path with a leading dot."""
    return {(c["field"], c["reason"], c["message"]) for c in case.get("causes", []) if not c["field"].startswith(".")}


@pytest.mark.parametrize("case", CASES, ids=[json.dumps(c["spec"]) for c in CASES])
def test_an_object_is_judged_as_the_real_server_judges_it(widgets: Compiled, case: dict[str, Any]) -> None:
    body = widget(case["spec"])
    before = copy.deepcopy(body)
    pruned, unknown = widgets.prune(body)
    stored = widgets.default(pruned)
    causes = widgets.validate(stored)
    assert body == before
    if case["code"] == 400:
        return
    assert {(c.field, c.reason, c.message) for c in causes} == by_schema(case)
    assert [f'unknown field "{path}"' for path in unknown] == case.get("warnings", [])
    if case["code"] == 201:
        assert stored["spec"] == case["stored"]
