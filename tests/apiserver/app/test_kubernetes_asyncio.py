"""kubernetes_asyncio as a client: the kubeconfig, custom and core objects, and its watch."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from kubernetes_asyncio import client, config, watch
from kubernetes_asyncio.client import ApiException

from nodewright.apiserver.app import APIServer
from tests.kubectl.manifests import GROUP, widget

WHERE = (GROUP, "v1", "default", "widgets")
MERGE = "application/merge-patch+json"


@pytest.fixture
async def kube(plane: APIServer) -> AsyncIterator[client.ApiClient]:
    """A client that reads the kubeconfig as everybody does."""
    settings = client.Configuration()
    await config.load_kube_config(config_file=str(plane.kubeconfig_path), client_configuration=settings)
    async with client.ApiClient(settings) as api:
        yield api


async def test_custom_objects_live_their_life(kube: client.ApiClient) -> None:
    api = client.CustomObjectsApi(kube)
    made = await api.create_namespaced_custom_object(*WHERE, widget("a"), field_manager="tests")
    assert made["spec"]["color"] == "green"
    patch = {"spec": {"size": 9}}
    changed = await api.patch_namespaced_custom_object(*WHERE, "a", patch, _content_type=MERGE)
    assert changed["metadata"]["generation"] == 2
    status = {"status": {"phase": "Sold"}}
    await api.patch_namespaced_custom_object_status(*WHERE, "a", status, _content_type=MERGE)
    scale = {"spec": {"replicas": 4}}
    await api.patch_namespaced_custom_object_scale(*WHERE, "a", scale, _content_type=MERGE)
    found = await api.get_namespaced_custom_object(*WHERE, "a")
    assert (found["spec"]["replicas"], found["status"]["phase"]) == (4, "Sold")
    listed = await api.list_cluster_custom_object(GROUP, "v1", "widgets", label_selector="!ghost")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]
    await api.delete_namespaced_custom_object(*WHERE, "a")
    with pytest.raises(ApiException, match="not found") as refused:
        await api.get_namespaced_custom_object(*WHERE, "a")
    assert refused.value.status == 404


async def test_a_stale_replace_is_a_conflict(kube: client.ApiClient) -> None:
    api = client.CustomObjectsApi(kube)
    made = await api.create_namespaced_custom_object(*WHERE, widget("a"))
    await api.patch_namespaced_custom_object(*WHERE, "a", {"spec": {"size": 9}}, _content_type=MERGE)
    with pytest.raises(ApiException) as refused:
        await api.replace_namespaced_custom_object(*WHERE, "a", made)
    assert refused.value.status == 409


async def test_typed_core_objects(kube: client.ApiClient) -> None:
    core = client.CoreV1Api(kube)
    metadata = client.V1ObjectMeta(name="host", labels={"a": "b"})
    await core.create_node(client.V1Node(metadata=metadata))
    await core.patch_node("host", {"spec": {"unschedulable": True}})
    node = await core.read_node("host")
    assert (node.spec.unschedulable, node.metadata.labels) == (True, {"a": "b"})
    secret = client.V1Secret(metadata=client.V1ObjectMeta(generate_name="s-"), string_data={"k": "v"})
    made = await core.create_namespaced_secret("default", secret)
    assert made.data == {"k": "dg=="}
    assert made.metadata.name.startswith("s-")
    assert [item.metadata.name for item in (await core.list_namespaced_secret("default")).items] == [made.metadata.name]
    await core.delete_node("host", body=client.V1DeleteOptions(propagation_policy="Background"))
    version = await client.VersionApi(kube).get_code()
    assert (version.major, version.minor) == ("1", "32")


async def test_a_watch_of_custom_objects(kube: client.ApiClient) -> None:
    api = client.CustomObjectsApi(kube)
    await api.create_namespaced_custom_object(*WHERE, widget("a"))
    seen = []
    watching = watch.Watch()
    try:
        stream = watching.stream(api.list_namespaced_custom_object, *WHERE, timeout_seconds=10)
        async for event in stream:
            seen.append((event["type"], event["object"]["metadata"]["name"]))
            if len(seen) == 1:
                await api.delete_namespaced_custom_object(*WHERE, "a")
            else:
                break
    finally:
        await watching.close()
    assert seen == [("ADDED", "a"), ("DELETED", "a")]


async def test_a_watch_of_typed_objects_ends_with_its_time(kube: client.ApiClient) -> None:
    core = client.CoreV1Api(kube)
    async with watch.Watch() as watching:
        stream = watching.stream(core.list_namespace, timeout_seconds=1, resource_version="0")
        names = [event["object"].metadata.name async for event in stream]
    assert sorted(names) == ["default", "kube-node-lease", "kube-public", "kube-system"]


async def test_discovery_as_this_client_reads_it(kube: client.ApiClient) -> None:
    groups = await client.ApisApi(kube).get_api_versions()
    assert GROUP in {group.name for group in groups.groups}
    resources = await client.CoreV1Api(kube).get_api_resources()
    assert "pods/eviction" in {resource.name for resource in resources.resources}
