"""Writes to built-in kinds, one by one, compared with the managedFields that a kube-apiserver 1.36 gave each.

Built-in types differ from custom ones: structs that are no pointers are in every object, and some keys have defaults.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nodewright.apiserver import managedfields
from nodewright.apiserver.store.builtin_kinds import builtin_kinds
from nodewright.apiserver.values import ApiError, Obj

CASES = json.loads((Path(__file__).parent / "golden/built_in_kinds.json").read_text())
RESOURCES = {(r.api_version, r.kind): r for r, _ in builtin_kinds()}


@dataclass(frozen=True)
class Author:
    manager: str
    operation: str
    subresource: str
    now: str = "2026-11-20T20:00:00Z"


def entries(obj: Obj) -> list[Obj]:
    stated = obj["metadata"].get("managedFields", [])
    timeless = [{k: v for k, v in entry.items() if k != "time"} for entry in stated]
    return sorted(timeless, key=lambda e: (e["operation"], e["manager"], e.get("subresource", "")))


def without_entries(obj: Obj) -> Obj:
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "managedFields"}}


@pytest.mark.parametrize("case", CASES, ids=[f"{i} {c['kind']} {c['verb']}" for i, c in enumerate(CASES)])
def test_a_write_to_a_built_in_kind_is_owned_as_on_the_real_server(case: Any) -> None:
    resource = RESOURCES[case["apiVersion"], case["kind"]]
    before = case["before"]
    if "body" not in case:
        author = Author(case["manager"], "Update", case["subresource"])
        after = managedfields.track(resource, before, without_entries(case["after"]), author)
        assert entries(after) == entries(case["after"])
        return
    author = Author(case["manager"], "Apply", case["subresource"])
    if case["code"] == 409:
        with pytest.raises(ApiError) as caught:
            managedfields.apply(resource, before, case["body"], author, False)
        assert caught.value.message == case["message"]
        return
    merged = managedfields.apply(resource, before, case["body"], author, case["verb"] == "force")
    assert entries(merged) == entries(case["after"])
