"""What a URL asks for, in Kubernetes' own words."""

from __future__ import annotations

import pytest
from multidict import MultiDict

from nodewright.apiserver.app.requests import Target, dry_run, flag, number, target_of
from nodewright.apiserver.values import ApiError

G, V = "cluster.k8s.io", "v1alpha1"

URLS = {
    "a collection of the core group": ("GET", "/api/v1/pods", Target("list", "", "v1", "pods")),
    "a namespaced collection": (
        "GET",
        "/apis/cluster.k8s.io/v1alpha1/namespaces/ns/machines",
        Target("list", G, V, "machines", "ns"),
    ),
    "an object": (
        "GET",
        "/apis/cluster.k8s.io/v1alpha1/namespaces/ns/machines/m-1",
        Target("get", G, V, "machines", "ns", "m-1"),
    ),
    "a subresource": (
        "PATCH",
        "/apis/cluster.k8s.io/v1alpha1/namespaces/ns/machinesets/a/scale",
        Target("patch", G, V, "machinesets", "ns", "a", "scale"),
    ),
    "a namespace is an object, not a scope": (
        "GET",
        "/api/v1/namespaces/ns",
        Target("get", "", "v1", "namespaces", "", "ns"),
    ),
    "a namespace's status": (
        "PUT",
        "/api/v1/namespaces/ns/status",
        Target("update", "", "v1", "namespaces", "", "ns", "status"),
    ),
    "a namespace's finalizers": (
        "PUT",
        "/api/v1/namespaces/ns/finalize",
        Target("update", "", "v1", "namespaces", "", "ns", "finalize"),
    ),
    "deleting a collection": (
        "DELETE",
        "/api/v1/namespaces/ns/pods",
        Target("deletecollection", "", "v1", "pods", "ns"),
    ),
    "deleting an object": ("DELETE", "/api/v1/nodes/n", Target("delete", "", "v1", "nodes", "", "n")),
    "creating": ("POST", "/api/v1/namespaces/ns/pods", Target("create", "", "v1", "pods", "ns")),
    "an eviction": (
        "POST",
        "/api/v1/namespaces/ns/pods/p/eviction",
        Target("create", "", "v1", "pods", "ns", "p", "eviction"),
    ),
    "a path below a subresource": (
        "GET",
        "/api/v1/namespaces/ns/pods/p/proxy/metrics",
        Target("get", "", "v1", "pods", "ns", "p", "proxy", ("metrics",)),
    ),
}


@pytest.mark.parametrize("case", URLS)
def test_a_path_is_read_as(case: str) -> None:
    method, path, expected = URLS[case]
    assert target_of(method, path, MultiDict()) == expected


@pytest.mark.parametrize(
    "path", ["/", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz", "/openapi/v3"]
)
def test_a_path_above_the_resources_names_none(path: str) -> None:
    assert target_of("GET", path, MultiDict()) is None


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("true", "watch"),
        ("True", "watch"),
        ("1", "watch"),
        ("", "watch"),
        ("false", "list"),
        ("False", "list"),
        ("0", "list"),
    ],
)
def test_watch_is_true_however_a_client_writes_it(text: str, verb: str) -> None:
    target = target_of("GET", "/api/v1/pods", MultiDict({"watch": text}))
    assert target is not None
    assert target.verb == verb


def test_a_flag_that_is_absent_is_false() -> None:
    assert not flag(MultiDict(), "force")


def test_a_number_that_is_none_is_refused_with_the_text_quoted() -> None:
    with pytest.raises(ApiError, match='parsing "many"') as refused:
        number(MultiDict({"limit": "many"}), "limit")
    assert refused.value.code == 400


def test_dry_run_knows_all_and_nothing_else() -> None:
    assert dry_run(["All"], "PatchOptions")
    assert not dry_run([], "PatchOptions")
    with pytest.raises(ApiError, match=r'dryRun: Unsupported value: .*supported values: "All"') as refused:
        dry_run(["Some"], "PatchOptions")
    assert refused.value.code == 422
