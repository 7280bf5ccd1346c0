"""What a Table carries besides its cells."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from nodewright.apiserver import table
from nodewright.apiserver.store.builtin_kinds import builtin_kinds
from nodewright.apiserver.values import ApiError, Obj, Resource

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps", "configmap", "ConfigMapList", True)
CELL = Resource("example.com", "v1", "Cell", "cells", "cell", "CellList", True, builtin=False)
OBJ: Obj = {
    "kind": "ConfigMap",
    "apiVersion": "v1",
    "metadata": {"name": "a", "creationTimestamp": "2026-11-20T11:59:00Z"},
    "data": {"k": "v"},
}
PARTIAL = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": OBJ["metadata"]}


@pytest.mark.parametrize(
    ("include", "carried"), [("", PARTIAL), ("Metadata", PARTIAL), ("Object", OBJ), ("None", None)]
)
def test_a_row_carries_as_much_of_its_object_as_was_asked_for(include: str, carried: Any) -> None:
    rendered = table.render(CONFIG_MAP, [OBJ], {"resourceVersion": "5"}, include, NOW)
    assert rendered["rows"] == [{"cells": ["a", 1, "60s"], "object": carried}]
    assert (rendered["kind"], rendered["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert rendered["metadata"] == {"resourceVersion": "5"}


def test_asking_for_something_else_is_refused() -> None:
    with pytest.raises(ApiError, match="must be 'Metadata', 'Object', 'None', or empty") as caught:
        table.render(CONFIG_MAP, [], {}, "All", NOW)
    assert caught.value.code == 400


def test_an_empty_list_has_columns_and_no_rows() -> None:
    rendered = table.render(CONFIG_MAP, [], {}, "", NOW)
    assert [c["name"] for c in rendered["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert rendered["rows"] == []


@pytest.mark.parametrize("include", ["None", "Metadata"])
def test_a_bookmark_always_says_where_the_watch_is(include: str) -> None:
    metadata = {"resourceVersion": "9", "creationTimestamp": None, "annotations": {"k8s.io/initial-events-end": "true"}}
    bookmark = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}
    row = table.render(CONFIG_MAP, [bookmark], {}, include, NOW)["rows"][0]
    assert row["object"]["metadata"] == metadata
    assert row["cells"] == ["", 0, "<unknown>"]


def test_a_scale_has_columns_of_its_own() -> None:
    scale = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "c", "creationTimestamp": "2026-11-20T11:58:54Z"},
        "spec": {"replicas": 2},
        "status": {},
    }
    deployment = Resource("apps", "v1", "Deployment", "deployments", "deployment", "DeploymentList", True)
    for resource, expected in ((CELL, "date"), (deployment, "string")):
        rendered = table.render(resource, [scale], {}, "None", NOW)
        assert [c["name"] for c in rendered["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
        assert rendered["columnDefinitions"][3]["type"] == expected
        assert rendered["rows"][0]["cells"] == ["c", 2, 0, "66s"]


@pytest.mark.parametrize("resource", [resource for resource, _ in builtin_kinds()], ids=lambda r: r.group_kind)
@pytest.mark.parametrize("spec", [{}, {"spec": {}, "status": {}}, {"spec": None, "status": None}])
def test_every_kind_can_be_shown_with_nothing_but_a_name(resource: Resource, spec: Obj) -> None:
    obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {"name": "bare"}, **spec}
    rendered = table.render(resource, [obj], {}, "Metadata", NOW)
    assert len(rendered["rows"][0]["cells"]) == len(rendered["columnDefinitions"])
    assert all(cell is None or isinstance(cell, str | int) for cell in rendered["rows"][0]["cells"])
    assert "bare" in rendered["rows"][0]["cells"]


def test_endpoints_without_ports_or_addresses_can_be_shown() -> None:
    endpoints = Resource("", "v1", "Endpoints", "endpoints", "endpoints", "EndpointsList", True)
    subsets = [{"ports": [{}], "addresses": [{}]}, {}]
    obj = {"kind": "Endpoints", "apiVersion": "v1", "metadata": {"name": "e"}, "subsets": subsets}
    assert table.render(endpoints, [obj], {}, "None", NOW)["rows"][0]["cells"] == ["e", ":0", "<unknown>"]
