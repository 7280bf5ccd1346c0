"""No text of others becomes a part of a request that it was not meant to be."""

from __future__ import annotations

from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.kernel.refs import MACHINE, NODE, POD, Key, Kind, Ref, guessed_kind
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import InvalidRequestError
from nodewright.runtime.kube.paths import collection_path, field_selector, object_path, with_query
from tests.runtime.stub_server import StubServer

NO_NAMES = ["", ".", "..", "a/b", "../secrets", "a%2fb", "a\nb", "a\x00b", "x" * 254, "a\u202eb"]
NO_LABELS = ["A", "a.b", "-a", "a/b", "../x", "v1?x=", "v1#", "v1\n", "a b", "%2e%2e", "x" * 64, "ä"]


@pytest.mark.parametrize("name", NO_NAMES)
@pytest.mark.parametrize("kind", [NODE, POD], ids=str)
def test_what_is_no_name_is_refused(kind: Kind, name: str) -> None:
    with pytest.raises(InvalidRequestError, match="name"):
        object_path(kind, Key("default" if kind.namespaced else "", name))


@pytest.mark.parametrize("namespace", NO_LABELS)
def test_what_is_no_namespace_is_refused(namespace: str) -> None:
    for build in (lambda: object_path(POD, Key(namespace, "a")), lambda: collection_path(POD, namespace)):
        with pytest.raises(InvalidRequestError, match="namespace"):
            build()


def test_an_object_of_a_namespaced_kind_needs_its_namespace() -> None:
    with pytest.raises(InvalidRequestError, match="namespace is empty"):
        object_path(POD, Key("", "a"))
    assert collection_path(POD, "") == "/api/v1/pods"


@pytest.mark.parametrize("text", NO_LABELS)
def test_what_is_no_version_resource_or_subresource_is_refused(text: str) -> None:
    for kind in (Kind("g.io", text, "A", "as"), Kind("g.io", "v1", "A", text)):
        with pytest.raises(InvalidRequestError):
            collection_path(kind, "")
    with pytest.raises(InvalidRequestError, match="subresource"):
        object_path(POD, Key("default", "a"), text)


@pytest.mark.parametrize("group", ["a/b", "..", "a..b", "A.io", "g.io/v1/namespaces", "x" * 254, "g.io?", "g.io\n"])
def test_what_is_no_group_is_refused(group: str) -> None:
    with pytest.raises(InvalidRequestError, match="group"):
        collection_path(Kind(group, "v1", "A", "as"), "")


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("cluster.k8s.io/v1alpha1/namespaces/victim/machines/m-1?x=", "Reboot"),
        ("remedy.example.com/v1", "Reboot/../../x"),
        ("remedy.example.com/v1", "Reboot?x="),
        ("remedy.example.com/..", "Reboot"),
        ("remedy.example.com/v1#", "Reboot"),
    ],
)
async def test_a_guessed_kind_reaches_no_other_path(
    client: KubeClient, stub: StubServer, api_version: str, kind: str
) -> None:
    guessed = guessed_kind(api_version, kind)
    with pytest.raises(InvalidRequestError):
        await client.get(guessed, Key("default", "a"))
    with pytest.raises(InvalidRequestError):
        await client.delete(Ref(guessed, Key("default", "a")))
    assert not stub.requests


async def test_the_name_of_a_node_asks_for_its_pods_alone(client: KubeClient, stub: StubServer) -> None:
    await client.pods_on("n,metadata.namespace=kube-system&limit=1\\")
    (request,) = stub.requests
    assert dict(request.query) == {
        "fieldSelector": r"spec.nodeName=n\,metadata.namespace\=kube-system&limit\=1" + "\\\\"
    }


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=10))
def test_any_text_is_one_part_of_the_path_or_refused(namespace: str, name: str, subresource: str) -> None:
    try:
        path = object_path(MACHINE, Key(namespace, name), subresource)
    except InvalidRequestError:
        return
    parts = urlsplit(path)
    assert (parts.path, parts.query, parts.fragment, parts.netloc) == (path, "", "", "")
    expected = ["", "apis", MACHINE.group, MACHINE.version, "namespaces", namespace, "machines", name]
    assert [unquote(part) for part in path.split("/")] == expected + ([subresource] if subresource else [])


@given(st.dictionaries(st.text(max_size=10), st.text(min_size=1, max_size=20), max_size=3))
def test_any_query_is_read_back_as_it_was_meant(query: dict[str, str]) -> None:
    parts = urlsplit(with_query("/api/v1/pods", query))
    assert parts.path == "/api/v1/pods"
    assert {name: [value] for name, value in query.items()} == parse_qs(parts.query)


@given(st.text(max_size=20))
def test_a_field_selector_has_one_term(value: str) -> None:
    (said,) = field_selector("spec.nodeName", value).values()
    term = said.removeprefix("spec.nodeName=")
    plain = term.replace("\\\\", "").replace("\\,", "").replace("\\=", "")
    assert not set(plain) & {"\\", ",", "="}
