"""Sequences of writes by several managers, compared step by step with what a kube-apiserver 1.36 answered."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nodewright.apiserver import managedfields, patch
from nodewright.apiserver.validation import compile_schema
from nodewright.apiserver.values import ApiError, Obj, Resource

HERE = Path(__file__).parent
SCHEMA = json.loads((HERE.parent / "validation/golden/widgets.crd.json").read_text())["spec"]["versions"][0]["schema"]
WIDGETS = Resource(
    "example.com",
    "v1",
    "Widget",
    "widgets",
    "widget",
    "WidgetList",
    True,
    subresources=frozenset({"status", "scale"}),
    schema=SCHEMA["openAPIV3Schema"],
    builtin=False,
)
SHAPE = compile_schema(SCHEMA["openAPIV3Schema"])
SCENARIOS = sorted(path.stem for path in (HERE / "golden/scenarios").glob("*.json"))


@dataclass(frozen=True)
class Author:
    manager: str
    operation: str
    subresource: str
    now: str


def through_door(live: Obj | None, new: Obj, subresource: str) -> Obj:
    """Keep what a write through the object itself, or through its status, cannot change."""
    if subresource == "status":
        assert live is not None
        return {
            **{k: v for k, v in live.items() if k != "status"},
            **({"status": new["status"]} if "status" in new else {}),
        }
    kept = {k: v for k, v in new.items() if k != "status"}
    return {**kept, "status": live["status"]} if live is not None and "status" in live else kept


def write(live: Obj | None, step: Any, author: Author) -> Obj:
    """Do what a store does, as far as ownership needs it."""
    if step["verb"] == "apply":
        merged = managedfields.apply(WIDGETS, live, step["body"], author, step["force"])
        return SHAPE.default(merged)
    if step["verb"] == "create":
        new = SHAPE.default(through_door(None, step["body"], ""))
        new = {**new, "metadata": {**new["metadata"], "uid": "1"}}
        return managedfields.track(WIDGETS, None, new, author)
    assert live is not None
    new = through_door(live, SHAPE.default(patch.apply_merge(live, step["body"])), author.subresource)
    if author.subresource:
        new = {**new, "metadata": live["metadata"]}
    return managedfields.track(WIDGETS, live, new, author)


def entries(stated: list[Obj]) -> list[Obj]:
    """The entries without their times, and not in their order: the real server took all steps in the same second."""
    timeless = [{k: v for k, v in entry.items() if k not in ("time", "fieldsType")} for entry in stated]
    return sorted(timeless, key=lambda e: (e["operation"], e["manager"], e["apiVersion"], e.get("subresource", "")))


def refused_only_by_upstream(step: Any) -> bool:
    """Upstream leaves a null where the last entry of a map was taken back, and then refuses it."""
    return step["code"] == 422 and 'must be of type object: "null"' in step["message"]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_step_of_a_scenario_ends_as_on_the_real_server(scenario: str) -> None:
    live: Obj | None = None
    for number, step in enumerate(json.loads((HERE / "golden/scenarios" / f"{scenario}.json").read_text())):
        operation = "Apply" if step["verb"] == "apply" else "Update"
        author = Author(step["manager"], operation, step["subresource"], f"2026-11-20T20:{number:02}:00Z")
        frozen = json.dumps(live)
        where = f"{scenario}, step {number}: {json.dumps(step['body'])}"
        if refused_only_by_upstream(step):
            continue
        if step["code"] in (200, 201):
            after = write(live, step, author)
            assert json.dumps(live) == frozen, where
            assert {k: v for k, v in after.items() if k in ("spec", "status")} == step["object"], where
            assert entries(after["metadata"].get("managedFields", [])) == entries(step["managedFields"]), where
            assert after["metadata"].get("labels") == step["labels"], where
            assert after["metadata"].get("annotations") == step["annotations"], where
            live = after
            continue
        if step["code"] == 422:
            assert SHAPE.validate(SHAPE.default(write(live, step, author))), where
            continue
        with pytest.raises(ApiError) as caught:
            write(live, step, author)
        # What a client got wrong is a 400 here; the real server calls some of it an error of its own.
        assert caught.value.code == (400 if step["code"] == 500 else step["code"]), where
        assert caught.value.message == step["message"], where
        if step["code"] == 409:
            assert caught.value.status()["details"] == step["details"], where
