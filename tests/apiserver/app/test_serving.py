"""Who is let in, what is answered to what, and how the server refuses."""

from __future__ import annotations

import ssl

import aiohttp
import pytest
import yaml

from nodewright.apiserver.app import APIServer, APIServerConfig, Limits
from tests.apiserver.app.client import APPLY, MERGE, WIDGETS, Client, client_of
from tests.kubectl.manifests import GROUP, widget

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version"])
async def test_anybody_may_ask_for_health_and_version(plane: APIServer, path: str) -> None:
    async with client_of(plane, token="") as stranger:
        assert (await stranger("GET", path)).status == 200


@pytest.mark.parametrize("token", ["", "wrong", "a.b.c"])
@pytest.mark.parametrize("path", ["/", "/api", "/apis", "/api/v1/namespaces", "/openapi/v3", "/ghost"])
async def test_nobody_else_may_ask_for_anything_more(plane: APIServer, token: str, path: str) -> None:
    async with client_of(plane, token=token) as stranger:
        answer = await stranger("GET", path)
    assert answer.status == 401
    assert (answer.json["kind"], answer.json["reason"]) == ("Status", "Unauthorized")


async def test_a_client_certificate_lets_the_administrator_in(plane: APIServer) -> None:
    folder = plane.ca_path.parent
    context = ssl.create_default_context(cafile=str(plane.ca_path))
    context.load_cert_chain(folder / "admin.crt", folder / "admin.key")
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        url = f"{plane.url}/apis/authentication.k8s.io/v1/selfsubjectreviews"
        async with session.post(url, json=review) as response:
            info = (await response.json())["status"]["userInfo"]
    assert info == {"username": "nodewright-admin", "groups": ["system:masters", "system:authenticated"]}


async def test_a_service_account_is_let_in_until_it_is_deleted(plane: APIServer, api: Client) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await api.create(accounts, {"metadata": {"name": "robot"}})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = (await api.create(f"{accounts}/robot/token", request))["status"]["token"]
    async with client_of(plane, token=token) as robot:
        assert (await robot("GET", "/api/v1/nodes")).status == 200
        await api("DELETE", f"{accounts}/robot")
        assert (await robot("GET", "/api/v1/nodes")).status == 401


async def test_a_token_request_has_bounds(api: Client) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await api.create(accounts, {"metadata": {"name": "robot"}})
    answer = await api("POST", f"{accounts}/robot/token", {"spec": {"expirationSeconds": 5}})
    assert answer.status == 422
    assert "spec.expirationSeconds: Invalid value: 5" in answer.json["message"]


async def test_the_server_listens_on_loopback_with_modern_tls(plane: APIServer) -> None:
    assert plane.url.startswith("https://127.0.0.1:")
    context = ssl.create_default_context(cafile=str(plane.ca_path))
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    connector = aiohttp.TCPConnector(ssl=context)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get(f"{plane.url}/healthz") as response,
    ):
        assert await response.text() == "ok"


REFUSALS = {
    "an unknown resource of Kubernetes itself": ("GET", "/apis/apps/v1/ghosts", 404, "NotFound"),
    "an unknown object": ("GET", f"{WIDGETS}/ghost", 404, "NotFound"),
    "an unknown subresource": ("GET", f"{WIDGETS}/a/ghost", 404, "NotFound"),
    "logs, that nobody keeps": ("GET", "/api/v1/namespaces/default/pods/p/log", 404, "NotFound"),
    "a namespace for a kind that has none": ("GET", "/api/v1/namespaces/default/nodes", 404, "NotFound"),
    "an object without its namespace": ("GET", f"/apis/{GROUP}/v1/widgets/a", 404, "NotFound"),
    "creating without a namespace": ("POST", "/api/v1/configmaps", 405, "MethodNotAllowed"),
    "posting to an object": ("POST", f"{WIDGETS}/a", 405, "MethodNotAllowed"),
    "putting a collection": ("PUT", WIDGETS, 405, "MethodNotAllowed"),
    "deleting all namespaces": ("DELETE", "/api/v1/namespaces", 405, "MethodNotAllowed"),
    "deleting a status": ("DELETE", f"{WIDGETS}/a/status", 405, "MethodNotAllowed"),
    "an unknown method": ("PROPFIND", WIDGETS, 405, "MethodNotAllowed"),
    "posting to discovery": ("POST", "/apis", 405, "MethodNotAllowed"),
    "a limit that is no number": ("GET", f"{WIDGETS}?limit=many", 400, "BadRequest"),
    "a selector that can't be read": ("GET", f"{WIDGETS}?labelSelector=a%3D%3D%3Db", 400, "BadRequest"),
    "a token to go on that is none": ("GET", f"{WIDGETS}?limit=1&continue=xyz", 400, "BadRequest"),
}


@pytest.mark.parametrize("case", REFUSALS)
async def test_refused_with_a_status_object(api: Client, case: str) -> None:
    method, path, code, reason = REFUSALS[case]
    answer = await api(method, path)
    assert answer.status == code, answer.text
    status = answer.json
    assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")
    assert (status["code"], status["reason"]) == (code, reason)


NOT_SERVED = {
    "an unknown group": ("GET", "/apis/ghost.example.com/v1/ghosts"),
    "an unknown resource": ("GET", f"/apis/{GROUP}/v1/ghosts"),
    "an unknown path": ("GET", "/ghost"),
    "creating without a namespace": ("POST", f"/apis/{GROUP}/v1/widgets"),
}


@pytest.mark.parametrize("case", NOT_SERVED)
async def test_a_path_that_is_not_served_at_all_is_answered_in_one_line(api: Client, case: str) -> None:
    answer = await api(*NOT_SERVED[case])
    assert (answer.status, answer.text) == (404, "404 page not found\n")


async def test_a_body_of_another_kind_name_or_namespace_is_refused(api: Client) -> None:
    for change, code in (({"kind": "Gadget"}, 422), ({"apiVersion": f"{GROUP}/v9"}, 400), ({"kind": None}, 400)):
        answer = await api("POST", WIDGETS, {**widget("a"), **change})
        assert (answer.status, answer.json["code"]) == (code, code), change
    await api.create(WIDGETS, widget("a"))
    answer = await api("PUT", f"{WIDGETS}/a", widget("b"))
    assert "the name of the object (b) does not match the name on the URL (a)" in answer.json["message"]
    elsewhere = widget("c")
    elsewhere["metadata"]["namespace"] = "kube-system"
    answer = await api("POST", WIDGETS, elsewhere)
    assert "does not match the namespace sent on the request" in answer.json["message"]


async def test_a_body_that_is_too_long_is_refused(api: Client) -> None:
    answer = await api("POST", WIDGETS, b'{"x": "' + b"y" * (3 * 1024 * 1024) + b'"}')
    assert (answer.status, answer.json["reason"]) == (413, "RequestEntityTooLarge")


async def test_a_body_within_the_limit_is_taken(api: Client) -> None:
    body = widget("a", extra={"text": "y" * 2_000_000})
    assert (await api("POST", WIDGETS, body)).status == 201


async def test_a_media_type_that_nobody_reads_is_refused(api: Client) -> None:
    answer = await api("POST", WIDGETS, b"<widget/>", Content_Type="application/xml")
    assert answer.status == 415
    answer = await api("PATCH", f"{WIDGETS}/a", {}, Content_Type="application/json")
    assert answer.status == 415
    assert "application/merge-patch+json" in answer.json["message"]
    assert (await api("GET", WIDGETS, Accept="text/html")).status == 406


async def test_yaml_goes_in_and_comes_out(api: Client) -> None:
    sent = yaml.safe_dump(widget("a", 7)).encode()
    answer = await api("POST", WIDGETS, sent, Content_Type="application/yaml")
    assert answer.status == 201
    shown = await api("GET", f"{WIDGETS}/a", Accept="application/yaml")
    assert yaml.safe_load(shown.text)["spec"]["size"] == 7


async def test_warnings_come_as_headers(api: Client) -> None:
    body = b'{"apiVersion":"%s/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":1,"size":2,"speed":3}}'
    answer = await api("POST", WIDGETS, body % GROUP.encode())
    assert answer.status == 201
    assert answer.warnings == [
        '299 - "duplicate field \\"spec.size\\""',
        '299 - "unknown field \\"spec.speed\\""',
    ]
    answer = await api("POST", f"{WIDGETS}?fieldValidation=Ignore", {**widget("b"), "speed": 3})
    assert answer.warnings == []


async def test_a_dry_run_answers_as_if_and_changes_nothing(api: Client) -> None:
    answer = await api("POST", f"{WIDGETS}?dryRun=All", widget("a"))
    assert (answer.status, answer.json["spec"]["color"]) == (201, "green")
    assert (await api("GET", f"{WIDGETS}/a")).status == 404
    assert (await api("POST", f"{WIDGETS}?dryRun=Some", widget("a"))).status == 422
    await api.create(WIDGETS, widget("a"))
    answer = await api("DELETE", f"{WIDGETS}/a", {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]})
    assert answer.status == 200
    assert (await api("GET", f"{WIDGETS}/a")).status == 200


OPTIONS = {
    "an unknown field validation": ("POST", "?fieldValidation=Hard", "", "fieldValidation: Unsupported value"),
    "force without apply": ("PATCH", "/a?force=true", MERGE, "force: Forbidden"),
    "apply without a manager": ("PATCH", "/a", APPLY, "fieldManager: Required value"),
    "an unknown propagation": ("DELETE", "/a?propagationPolicy=Hard", "", "propagationPolicy: Unsupported value"),
    "initial events for a list": ("GET", "?sendInitialEvents=true", "", "sendInitialEvents: Forbidden"),
    "initial events without a match": ("GET", "?watch=1&sendInitialEvents=true", "", "resourceVersionMatch: Forbid"),
    "a manager that is too long": ("POST", f"?fieldManager={'x' * 129}", "", "fieldManager: Too long"),
}


@pytest.mark.parametrize("case", OPTIONS)
async def test_options_are_checked(api: Client, case: str) -> None:
    method, rest, kind, message = OPTIONS[case]
    body = None if method in ("GET", "DELETE") else widget("a")
    answer = await api(method, WIDGETS + rest, body, **({"Content_Type": kind} if kind else {}))
    assert answer.status == 422, answer.text
    assert message in answer.json["message"]


async def test_lists_come_as_tables_or_as_metadata_only(api: Client) -> None:
    await api.create(WIDGETS, widget("a", 7))
    table = await api.get(WIDGETS, Accept=TABLE)
    assert table["kind"] == "Table"
    assert table["rows"][0]["cells"][:2] == ["a", 7]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    partial = await api.get(WIDGETS, Accept=TABLE.replace("Table", "PartialObjectMetadataList"))
    assert partial["kind"] == "PartialObjectMetadataList"
    assert set(partial["items"][0]) == {"kind", "apiVersion", "metadata"}
    one = await api.get(f"{WIDGETS}/a", Accept=TABLE.replace("Table", "PartialObjectMetadata"))
    assert one["kind"] == "PartialObjectMetadata"


async def test_a_list_pages_at_one_version(api: Client) -> None:
    for name in "abc":
        await api.create(WIDGETS, widget(name))
    first = await api.get(f"{WIDGETS}?limit=2")
    await api("DELETE", f"{WIDGETS}/c")
    rest = await api.get(f"{WIDGETS}?limit=2&continue={first['metadata']['continue']}")
    assert first["metadata"]["remainingItemCount"] == 1
    assert [item["metadata"]["name"] for item in first["items"] + rest["items"]] == ["a", "b", "c"]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_a_collection_is_deleted_as_a_whole(api: Client) -> None:
    for name in "ab":
        await api.create(WIDGETS, widget(name))
    answer = await api("DELETE", f"{WIDGETS}?fieldSelector=metadata.name%3Da")
    assert [item["metadata"]["name"] for item in answer.json["items"]] == ["a"]
    assert [item["metadata"]["name"] for item in (await api.get(WIDGETS))["items"]] == ["b"]


async def test_a_full_house_tells_clients_to_come_back() -> None:
    full = APIServerConfig(limits=Limits(watches=0, requests_in_flight=0))
    async with APIServer(full) as plane, client_of(plane) as client:
        for path in ("/api/v1/nodes", "/api/v1/nodes?watch=true"):
            answer = await client("GET", path)
            assert (answer.status, answer.json["reason"]) == (429, "TooManyRequests")
            assert int(answer.headers["Retry-After"]) > 0
