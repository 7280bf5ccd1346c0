"""What writes to kinds that Kubernetes itself brings do and refuse."""

from __future__ import annotations

from typing import Any

import pytest

from nodewright.apiserver.store import Store
from tests.apiserver.store.cluster import Cluster, refusal


def test_secrets_take_text_and_keep_it_encoded(cluster: Cluster) -> None:
    secret = cluster.create("secrets", {"metadata": {"name": "s"}, "stringData": {"a": "hello"}})
    assert secret["data"] == {"a": "aGVsbG8="}
    assert secret["type"] == "Opaque"
    assert "stringData" not in secret


def test_immutable_config_stays_as_it_is(cluster: Cluster) -> None:
    config = cluster.create("configmaps", {"metadata": {"name": "c"}, "data": {"a": "1"}, "immutable": True})
    error = refusal(lambda: cluster.update("configmaps", {**config, "data": {"a": "2"}}))
    assert "data: Forbidden: field is immutable when `immutable` is set" in error.message


def test_a_nodes_provider_id_is_set_once(cluster: Cluster) -> None:
    cluster.create("nodes", {"metadata": {"name": "n"}})
    cluster.merge("nodes", "n", {"spec": {"providerID": "sim://1"}})
    error = refusal(lambda: cluster.merge("nodes", "n", {"spec": {"providerID": "sim://2"}}))
    assert "spec.providerID" in error.message


def test_a_write_to_a_subresource_that_a_kind_lacks_is_not_found(cluster: Cluster) -> None:
    config = cluster.create("configmaps", {"metadata": {"name": "c"}})
    assert refusal(lambda: cluster.update("configmaps", config, subresource="status")).code == 404
    assert refusal(lambda: cluster.update("pods", config, subresource="eviction")).code == 405


def test_the_start_has_the_usual_namespaces(cluster: Cluster) -> None:
    assert cluster.names("namespaces") == ["default", "kube-node-lease", "kube-public", "kube-system"]
    namespace = cluster.get("namespaces", "default")
    assert namespace["status"] == {"phase": "Active"}
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "default"}


def test_a_pod_is_bound_once(cluster: Cluster) -> None:
    cluster.create("pods", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    binding = {"kind": "Binding", "apiVersion": "v1", "target": {"kind": "Node", "name": "n1"}}
    store: Store = cluster.store
    assert store.bind("default", "p", binding)["code"] == 201
    assert cluster.get("pods", "p")["spec"]["nodeName"] == "n1"
    assert refusal(lambda: store.bind("default", "p", binding)).code == 409


@pytest.mark.parametrize(
    ("metadata", "spec", "why"),
    [
        ({"uid": "another"}, {}, "Precondition failed: UID in precondition: another"),
        ({"resourceVersion": "1"}, {}, "Precondition failed: ResourceVersion in precondition: 1"),
        ({}, {"schedulingGates": [{"name": "g"}]}, "pod p has non-empty .spec.schedulingGates"),
    ],
)
def test_a_pod_that_is_not_the_one_meant_or_not_ready_for_it_is_not_bound(
    cluster: Cluster, metadata: dict[str, str], spec: dict[str, Any], why: str
) -> None:
    containers = [{"name": "c", "image": "i"}]
    cluster.create("pods", {"metadata": {"name": "p"}, "spec": {"containers": containers, **spec}})
    binding = {"kind": "Binding", "apiVersion": "v1", "metadata": metadata, "target": {"kind": "Node", "name": "n1"}}
    refused = refusal(lambda: cluster.store.bind("default", "p", binding))
    assert refused.code == 409
    assert why in refused.message
