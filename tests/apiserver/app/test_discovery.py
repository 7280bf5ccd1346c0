"""What the server says that it serves, to new clients and to old ones."""

from __future__ import annotations

from typing import Any

from nodewright.apiserver.app import APIServer
from tests.apiserver.app.client import Client
from tests.kubectl.manifests import GROUP
from tests.kubectl.manifests import WIDGETS as CRD_NAME

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def named(items: list[Any], key: str, value: str) -> Any:
    (found,) = [item for item in items if item[key] == value]
    return found


async def test_the_aggregated_documents_tell_all_in_two_calls(api: Client) -> None:
    answer = await api("GET", "/apis", Accept=AGGREGATED)
    assert answer.headers["Content-Type"] == AGGREGATED
    groups = {item["metadata"]["name"]: item for item in answer.json["items"]}
    (version,) = groups[GROUP]["versions"]
    widgets = named(version["resources"], "resource", "widgets")
    assert widgets["responseKind"] == {"group": GROUP, "version": "v1", "kind": "Widget"}
    assert (widgets["scope"], widgets["shortNames"], widgets["categories"]) == ("Namespaced", ["wd"], ["shop"])
    scale = named(widgets["subresources"], "subresource", "scale")
    assert scale["responseKind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    core = await api.get("/api", Accept=AGGREGATED)
    pods = named(core["items"][0]["versions"][0]["resources"], "resource", "pods")
    assert named(pods["subresources"], "subresource", "eviction")["verbs"] == ["create"]


async def test_the_older_documents_tell_the_same(api: Client) -> None:
    assert (await api.get("/api"))["versions"] == ["v1"]
    groups = (await api.get("/apis"))["groups"]
    assert named(groups, "name", GROUP)["preferredVersion"] == {"groupVersion": f"{GROUP}/v1", "version": "v1"}
    assert (await api.get(f"/apis/{GROUP}"))["kind"] == "APIGroup"
    resources = (await api.get(f"/apis/{GROUP}/v1"))["resources"]
    assert {entry["name"] for entry in resources} == {"widgets", "widgets/status", "widgets/scale"}
    assert "watch" in named(resources, "name", "widgets")["verbs"]
    eviction = named((await api.get("/api/v1"))["resources"], "name", "pods/eviction")
    assert (eviction["group"], eviction["version"], eviction["kind"]) == ("policy", "v1", "Eviction")


async def test_unknown_groups_and_versions_are_not_found(api: Client) -> None:
    for path in ("/apis/ghost.example.com", f"/apis/{GROUP}/v9", "/api/v9", "/openapi/v3/apis/ghost/v1"):
        assert (await api("GET", path)).status == 404


async def test_a_document_is_sent_again_only_if_it_changed(api: Client) -> None:
    for path in ("/apis", f"/apis/{GROUP}/v1", "/openapi/v3"):
        tag = (await api("GET", path)).headers["ETag"]
        again = await api("GET", path, If_None_Match=tag)
        assert (again.status, again.text) == (304, "")
    assert (await api("DELETE", f"{CRDS}/{CRD_NAME}")).status == 200


async def test_a_new_kind_is_discovered_at_once(plane: APIServer, api: Client) -> None:
    await api.get("/apis")
    schema = {"openAPIV3Schema": {"type": "object"}}
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": schema}
        for name in ("v1beta1", "v2alpha1", "v1", "v1beta2")
    ]
    names = {"plural": "bolts", "singular": "bolt", "kind": "Bolt"}
    spec = {"group": "hardware.example.com", "scope": "Cluster", "names": names, "versions": versions}
    crd = {"metadata": {"name": "bolts.hardware.example.com"}, "spec": spec}
    await api.create(CRDS, {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", **crd})
    group = await api.get("/apis/hardware.example.com")
    assert [version["version"] for version in group["versions"]] == ["v1", "v1beta2", "v1beta1", "v2alpha1"]


async def test_openapi_describes_each_group_and_version(api: Client) -> None:
    paths = (await api.get("/openapi/v3"))["paths"]
    entry = paths[f"apis/{GROUP}/v1"]["serverRelativeURL"]
    document = await api.get(entry)
    kinds = [schema.get("x-kubernetes-group-version-kind", []) for schema in document["components"]["schemas"].values()]
    assert [{"group": GROUP, "version": "v1", "kind": "Widget"}] in kinds
