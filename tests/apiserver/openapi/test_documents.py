"""OpenAPI documents: complete, linked, and with what kubectl looks for."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from nodewright.apiserver import openapi
from nodewright.apiserver.store.builtin_kinds import builtin_kinds
from nodewright.apiserver.values import Resource

CRD = json.loads((Path(__file__).parent.parent / "validation/golden/widgets.crd.json").read_text())
WIDGETS = Resource(
    "example.com",
    "v1",
    "Widget",
    "widgets",
    "widget",
    "WidgetList",
    True,
    subresources=frozenset({"status", "scale"}),
    schema=CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
    builtin=False,
)
BUILT_IN = tuple(resource for resource, _ in builtin_kinds())
GROUPS = sorted({(resource.group, resource.version) for resource in BUILT_IN})


@dataclass(frozen=True)
class Registry:
    resources: tuple[Resource, ...]

    def all(self) -> Sequence[Resource]:
        return self.resources


def hash_of(*resources: Resource, path: str = "apis/example.com/v1") -> str:
    shown = openapi.index(Registry(resources))["paths"][path]["serverRelativeURL"]
    address, _, digest = str(shown).partition("?hash=")
    assert address == f"/openapi/v3/{path}"
    return digest


def widget_document() -> Any:
    return openapi.document(Registry((*BUILT_IN, WIDGETS)), "example.com", "v1")


@pytest.mark.parametrize(("group", "version"), GROUPS)
def test_every_reference_in_a_document_leads_somewhere_and_every_kind_is_in_it(group: str, version: str) -> None:
    document = openapi.document(Registry(BUILT_IN), group, version)
    schemas = document["components"]["schemas"]
    used = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
    assert used <= schemas.keys()
    kinds = {gvk["kind"] for s in schemas.values() for gvk in s.get("x-kubernetes-group-version-kind", ())}
    assert {r.kind for r in BUILT_IN if (r.group, r.version) == (group, version)} <= kinds


def test_a_hash_changes_with_the_content_and_with_nothing_else() -> None:
    same = replace(WIDGETS)
    other = replace(WIDGETS, schema={**(WIDGETS.schema or {}), "description": "changed"})
    assert hash_of(WIDGETS) == hash_of(same, *BUILT_IN)
    assert hash_of(WIDGETS) != hash_of(other)
    assert hash_of(WIDGETS) != hash_of(replace(WIDGETS, subresources=frozenset()))


def test_a_version_that_is_not_served_is_in_no_document() -> None:
    hidden = replace(WIDGETS, served=False)
    assert openapi.index(Registry((hidden,))) == {"paths": {}}
    assert openapi.document(Registry((hidden,)), "example.com", "v1")["paths"] == {}


def test_the_core_group_has_its_own_path() -> None:
    assert "api/v1" in openapi.index(Registry(BUILT_IN))["paths"]
    assert "/api/v1/nodes/{name}" in openapi.document(Registry(BUILT_IN), "", "v1")["paths"]


def test_kubectl_sees_that_the_server_validates_fields() -> None:
    patch = widget_document()["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "example.com", "version": "v1", "kind": "Widget"}
    assert {"fieldValidation", "fieldManager", "dryRun", "force"} <= {p["name"] for p in patch["parameters"]}
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]


def test_a_built_in_kind_takes_strategic_merge_patches() -> None:
    paths = openapi.document(Registry(BUILT_IN), "", "v1")["paths"]
    assert "application/strategic-merge-patch+json" in paths["/api/v1/nodes/{name}"]["patch"]["requestBody"]["content"]


def test_subresources_have_paths_of_their_own() -> None:
    paths = widget_document()["paths"]
    item = "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"
    scale = paths[f"{item}/scale"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert scale == {"$ref": "#/components/schemas/io.k8s.api.autoscaling.v1.Scale"}
    assert f"{item}/status" in paths
    pods = openapi.document(Registry(BUILT_IN), "", "v1")["paths"]
    assert "post" in pods["/api/v1/namespaces/{namespace}/pods/{name}/eviction"]


def test_a_custom_kind_keeps_its_schema_and_gets_what_all_kinds_have() -> None:
    schema = widget_document()["components"]["schemas"]["com.example.v1.Widget"]
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "example.com", "version": "v1", "kind": "Widget"}]
    assert schema["properties"]["spec"] == (WIDGETS.schema or {})["properties"]["spec"]
    meta = schema["properties"]["metadata"]["allOf"][0]["$ref"]
    assert meta == "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    assert schema["properties"]["apiVersion"]["description"]


def test_a_custom_kind_without_a_schema_takes_anything() -> None:
    registry = Registry((replace(WIDGETS, schema=None),))
    schema = openapi.document(registry, "example.com", "v1")["components"]["schemas"]["com.example.v1.Widget"]
    assert schema["x-kubernetes-preserve-unknown-fields"] is True


def test_lists_and_merge_keys_of_built_in_types_are_told() -> None:
    document = openapi.document(Registry(BUILT_IN), "", "v1")
    spec = document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]
    containers = spec["properties"]["containers"]
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert "containers" in spec["required"]
    assert containers["description"]
