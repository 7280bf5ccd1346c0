"""CEL rules and ratcheting on creates and updates, compared with what a kube-apiserver 1.36 said about each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodewright.apiserver.validation import Compiled, compile_schema

GOLDEN = Path(__file__).parent / "golden"
SCHEMA = json.loads((GOLDEN / "gadgets.crd.json").read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
CASES = json.loads((GOLDEN / "rules.json").read_text())


@pytest.fixture(scope="module")
def gadgets() -> Compiled:
    return compile_schema(SCHEMA)


def gadget(name: str, spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize("case", CASES, ids=[f"{json.dumps(c['old'])} to {json.dumps(c['new'])}" for c in CASES])
def test_a_change_is_judged_as_the_real_server_judges_it(gadgets: Compiled, case: dict[str, Any]) -> None:
    name = case.get("name", "g1")
    old = None if case["old"] is None else gadget(name, case["old"])
    causes = gadgets.validate(gadget(name, case["new"]), old)
    wanted = {(c["field"], c["reason"], c["message"]) for c in case.get("causes", [])}
    assert {(c.field, c.reason, c.message) for c in causes} == wanted
