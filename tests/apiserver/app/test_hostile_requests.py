"""Requests that no honest client sends: each is refused in words, and the plane serves the next one as before."""

from __future__ import annotations

import base64
import logging

import orjson
import pytest

from nodewright.apiserver.app import APIServer
from tests.apiserver.app.client import WIDGETS, Client
from tests.apiserver.app.raw import ask, request
from tests.kubectl.manifests import widget

MAPS = b"/api/v1/namespaces/default/configmaps"
YAML, JSON, APPLY = b"application/yaml", b"application/json", b"application/apply-patch+yaml"
JSON_PATCH = b"application/json-patch+json"
DIGITS = b"9" * 6000
PROTOBUF = b"application/vnd.kubernetes.protobuf"


def token(text: bytes) -> bytes:
    return base64.urlsafe_b64encode(text)


YAML_BODIES = {
    "more than 64 bits": b"x: 18446744073709551616",
    "thousands of digits": b"x: " + DIGITS,
    "thousands of hexadecimal digits": b"x: 0x" + b"f" * 6000,
    "infinity": b"x: .inf",
    "no number": b"x: .nan",
    "a float too large": b"x: 1.0e+999",
    "bytes": b"x: !!binary YQ==",
    "a set": b"x: !!set {a, b}",
    "pairs": b"x: !!omap [a: 1]",
    "a time": b"x: !!timestamp 2020-01-01",
    "an object of Python": b"x: !!python/object/apply:os.system [id]",
    "nested lists": b"x: " + b"[" * 60_000,
    "nested maps": b"x: " + b"{a: " * 20_000,
    "nested blocks": b"x:\n" + b"".join(b" " * depth + b"a:\n" for depth in range(1, 400)),
    "nested items": b"x: \n" + b"- " * 30_000,
    "an alias": b"x: &a [1]\ny: *a",
    "a lone surrogate": b'x: "\\ud800"',
    "bytes that are no UTF-8": b"x: \xff",
    "two documents": b"---\n{}\n---\n{}",
    "a false integer": b"x: !!int abc",
    "a key that is a list": b"? [1]\n: 2",
    "very many values": b"x:\n" + b"- 1\n" * 300_000,
}

JSON_BODIES = {
    "digits": b'{"metadata":{"name":"j"},"x":' + DIGITS + b"}",
    "digits given twice": b'{"metadata":{"name":"j"},"x":1,"x":' + b"9" * 300 + b"}",
    "nested": b'{"a":' * 250 + b"1" + b"}" * 250,
    "nested more": b"[" * 100_000,
    "a lone surrogate": b'{"metadata":{"name":"j"},"x":"\\ud800"}',
    "a thousand doubled fields": b"{%s}" % b",".join(b'"k%d":1,"k%d":2' % (i, i) for i in range(20_000)),
    "kinds that are no text": b'{"kind":["x"],"apiVersion":{}}',
    "metadata of null": b'{"metadata":null}',
}

QUERIES = {
    "limit of many digits": b"limit=" + b"9" * 30,
    "limit beyond 64 bits": b"limit=9223372036854775808",
    "limit in other digits": "limit=１".encode(),
    "limit of too many digits": b"limit=" + b"9" * 5000,
    "continue of nonsense": b"continue=%ff",
    "continue with many digits": b"continue=" + token(b'{"v":"meta.k8s.io/v1","rv":' + DIGITS + b',"start":"a/b"}'),
    "continue that is nested": b"continue=" + token(b"[" * 5000),
    "continue of no number": b"continue=" + token(b'{"v":"meta.k8s.io/v1","rv":NaN,"start":"/b"}'),
    "version of nonsense": b"resourceVersion=%ff",
    "version of many digits": b"resourceVersion=" + b"9" * 300,
    "labels of nonsense": b"labelSelector=a%3D%ff",
    "labels nested": b"labelSelector=" + b"(" * 3000,
    "fields of nonsense": b"fieldSelector=%ff",
    "watch for ever": b"watch=1&resourceVersion=%ff&timeoutSeconds=" + b"9" * 30,
}

PATHS = (
    b"/api/v1/namespaces/%ff/configmaps",
    MAPS + b"/%ff",
    MAPS + b"/%00",
    b"/api/v1/namespaces/a%2Fb/pods",
    b"/api/v1/namespaces/%ed%a0%80/pods",
    b"/apis/%ff/v1/x",
    b"/openapi/v3/apis/%ff/v1",
    b"/%zz",
    b"//api//v1",
)


async def refused(plane: APIServer, sent: bytes) -> int:
    """Send it; it must not be an error of the server, and the next request must be served as ever."""
    code, body = await ask(plane, sent)
    assert 200 <= code < 500, body[:500]
    code, body = await ask(plane, request(plane, "GET", MAPS))
    assert code == 200, body[:500]
    assert orjson.loads(body)["kind"] == "ConfigMapList"
    return code


@pytest.mark.parametrize("name", YAML_BODIES)
@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_a_yaml_body_is_bounded_and_holds_only_what_json_has(
    plane: APIServer, caplog: pytest.LogCaptureFixture, name: str, method: str
) -> None:
    head = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\n"
    path, kind = (MAPS, YAML) if method == "POST" else (MAPS + b"/y?fieldManager=m", APPLY)
    with caplog.at_level(logging.WARNING):
        await refused(plane, request(plane, method, path, head + YAML_BODIES[name], Content_Type=kind))
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("name", JSON_BODIES)
async def test_a_json_body_is_bounded(plane: APIServer, name: str) -> None:
    await refused(plane, request(plane, "POST", MAPS, JSON_BODIES[name], Content_Type=JSON))
    merge = b"application/merge-patch+json"
    await refused(plane, request(plane, "PATCH", MAPS + b"/j", JSON_BODIES[name], Content_Type=merge))


@pytest.mark.parametrize("name", QUERIES)
async def test_a_query_is_never_an_error_of_the_server(plane: APIServer, name: str) -> None:
    await refused(plane, request(plane, "GET", MAPS + b"?" + QUERIES[name]))


@pytest.mark.parametrize("path", PATHS)
async def test_a_path_is_never_an_error_of_the_server(plane: APIServer, path: bytes) -> None:
    for method, body in (("GET", b""), ("DELETE", b""), ("POST", b'{"metadata":{"name":"a"}}')):
        await refused(plane, request(plane, method, path, body, Content_Type=JSON))


@pytest.mark.parametrize("bearer", [b"Bearer \xff", b"Bearer a.\xff.b", b"Bearer ", b"Basic \xff"])
async def test_a_token_of_any_bytes_is_a_401(plane: APIServer, bearer: bytes) -> None:
    code, _ = await ask(plane, request(plane, "GET", MAPS, Authorization=bearer))
    assert code == 401


@pytest.mark.parametrize("name", ["Accept", "User_Agent", "Content_Encoding", "Host", "Content_Type", "If_None_Match"])
@pytest.mark.parametrize("value", [b"\xff\xfe", b"a;q=nan, */*;q=-inf", b",,;,", b"gzip", b"a" * 7000])
async def test_a_header_of_any_bytes_is_never_an_error_of_the_server(plane: APIServer, name: str, value: bytes) -> None:
    body = b'{"metadata":{"generateName":"h"}}'
    await refused(plane, request(plane, "POST", MAPS, body, **{"Content_Type": JSON, name: value}))
    await refused(plane, request(plane, "GET", b"/api", **{name: value}))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"k8s\0\xff\xff",
        b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x04\x0a\xff\xff\xff",
        b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\xb0\x09"
        + b'{"a":' * 200
        + b"[" * 100
        + b"1"
        + b"]" * 100
        + b"}" * 99,
    ],
)
async def test_protobuf_of_any_bytes_is_never_an_error_of_the_server(plane: APIServer, content: bytes) -> None:
    await refused(plane, request(plane, "POST", MAPS, content, Content_Type=PROTOBUF))
    await refused(plane, request(plane, "DELETE", MAPS + b"/x", content, Content_Type=PROTOBUF))


async def test_a_number_beyond_64_bits_is_the_same_double_in_yaml_and_json(api: Client) -> None:
    head = widget("n", extra={"big": 1})
    text = orjson.dumps(head).replace(b'"big":1', b'"big":18446744073709551616')
    assert (await api("POST", WIDGETS, text)).status == 201
    from_json = (await api.get(f"{WIDGETS}/n"))["spec"]
    assert (await api("DELETE", f"{WIDGETS}/n")).status == 200
    block = b"apiVersion: shop.example.com/v1\nkind: Widget\nmetadata: {name: n}\nspec: " + orjson.dumps(from_json)
    flow = block.replace(b"1.8446744073709552e19", b"18446744073709551616")
    answer = await api("POST", WIDGETS, flow, Content_Type="application/yaml")
    assert answer.status == 201, answer.text
    assert answer.json["spec"] == from_json


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        (
            [
                {"op": "add", "path": "/metadata/annotations", "value": {"a": "x" * 1000}},
                *[{"op": "copy", "from": "/metadata", "path": "/metadata/annotations/c"}] * 60,
            ],
            (400, 413),
        ),
        ([{"op": "copy", "from": "/metadata/annotations/a", "path": "/data/-"}] * 9000, (422,)),
        ([{"op": "add", "path": "/data/" + "a/" * 3000, "value": 1}], (422,)),
    ],
)
async def test_a_json_patch_can_not_blow_an_object_up(
    plane: APIServer, api: Client, operations: list[object], code: tuple[int, ...]
) -> None:
    await api.create(MAPS.decode(), {"metadata": {"name": "p"}, "data": {"a": "b"}})
    sent = request(plane, "PATCH", MAPS + b"/p", orjson.dumps(operations), Content_Type=JSON_PATCH)
    status, body = await ask(plane, sent)
    assert status in code, body[:300]
    assert (await api.get(f"{MAPS.decode()}/p"))["data"] == {"a": "b"}


async def test_a_patch_that_deepens_an_object_step_by_step_ends_at_the_bound(plane: APIServer, api: Client) -> None:
    await api.create(WIDGETS, widget("deep", extra={"a": {}}))
    nest: object = 1
    for _ in range(60):
        nest = {"a": nest}
    path, codes = "/spec/extra/a", []
    for _ in range(6):
        patch = orjson.dumps([{"op": "add", "path": path, "value": nest}])
        sent = request(plane, "PATCH", f"{WIDGETS}/deep".encode(), patch, Content_Type=JSON_PATCH)
        codes.append((await ask(plane, sent))[0])
        path += "/a" * 59
    assert set(codes) <= {200, 400, 422}, codes
    assert codes[-1] != 200
    for kind in ("application/json", "application/yaml", "application/json;as=Table;g=meta.k8s.io;v=v1"):
        assert (await api("GET", WIDGETS, Accept=kind)).status == 200


async def test_thousands_of_doubled_fields_are_answered_with_a_bounded_header(api: Client) -> None:
    many = ",".join(f'"k{i}":1,"k{i}":2' for i in range(20_000))
    body = f'{{"metadata":{{"name":"d"}},{many}}}'.encode()
    answer = await api("POST", MAPS.decode(), body)
    assert answer.status == 201
    assert sum(map(len, answer.warnings)) < 8192
