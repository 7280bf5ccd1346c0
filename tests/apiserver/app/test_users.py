"""People beside the administrator: those who only read change nothing, on any path, and see no Secret."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nodewright.apiserver.app import APIServer, APIServerConfig
from nodewright.apiserver.app.snapshots import PATH as SNAPSHOT
from nodewright.apiserver.app.users import USERS_FILE, Users, UsersError, new_person, read, write
from nodewright.apiserver.roles import Role
from tests.apiserver.app.client import WIDGETS, Client, client_of
from tests.kubectl.manifests import WIDGET_CRD, widget

START = datetime(2026, 1, 1, tzinfo=UTC)
SECRETS = "/api/v1/namespaces/default/secrets"
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[APIServer]:
    async with APIServer(APIServerConfig(data_dir=tmp_path, crds=(WIDGET_CRD,))) as plane:
        yield plane


def give(folder: Path, name: str, role: Role) -> str:
    """Answers the token."""
    person, token = new_person(name, role, "2026-01-01T00:00:00Z")
    write(folder / USERS_FILE, (*read(folder / USERS_FILE), person))
    return token


async def test_an_admin_does_everything_and_is_known_by_name(plane: APIServer, tmp_path: Path) -> None:
    async with client_of(plane, token=give(tmp_path, "ann", Role.ADMIN)) as ann:
        await ann.create(SECRETS, {"metadata": {"name": "s"}, "stringData": {"a": "b"}})
        assert (await ann.get(f"{SECRETS}/s"))["data"] == {"a": "Yg=="}
        assert (await ann("GET", SNAPSHOT)).status == 200
        review = await ann.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
        assert review["status"]["userInfo"]["username"] == "ann"


async def test_one_who_only_reads_gets_lists_and_watches_all_but_secrets(
    plane: APIServer, api: Client, tmp_path: Path
) -> None:
    await api.create(WIDGETS, widget("a", 1))
    await api.create(SECRETS, {"metadata": {"name": "s"}, "stringData": {"a": "b"}})
    async with client_of(plane, token=give(tmp_path, "bob", Role.READ_ONLY)) as bob:
        assert (await bob.get(f"{WIDGETS}/a"))["spec"]
        assert len((await bob.get(WIDGETS))["items"]) == 1
        async with bob.watch(WIDGETS, "resourceVersion=0&timeoutSeconds=1") as events:
            assert events is not None
        for path in ("/api", "/apis", "/version", "/openapi/v3", "/readyz"):
            assert (await bob("GET", path)).status == 200, path
        for path in (SECRETS, f"{SECRETS}/s", "/api/v1/secrets", f"{SECRETS}?watch=1", f"{SECRETS}/none", SNAPSHOT):
            refused = await bob("GET", path)
            assert refused.status == 403, path
            assert "Secrets" in refused.json["message"]


async def paths_of(api: Client) -> list[str]:
    """All that discovery names, collections, objects and subresources."""
    roots = ["/api/v1"]
    for group in (await api.get("/apis"))["groups"]:
        roots += [f"/apis/{each['groupVersion']}" for each in group["versions"]]
    paths = []
    for root in roots:
        for resource in (await api.get(root))["resources"]:
            plural, _, sub = resource["name"].partition("/")
            base = f"{root}/namespaces/default/{plural}" if resource["namespaced"] else f"{root}/{plural}"
            paths += [f"{base}/x{'/' + sub if sub else ''}", *([base] if not sub else [])]
    return paths


async def test_every_write_on_every_path_that_there_is_is_refused(
    plane: APIServer, api: Client, tmp_path: Path
) -> None:
    """Before the body is read, and whether the object exists or not."""
    revision = plane.store.resource_version
    async with client_of(plane, token=give(tmp_path, "bob", Role.READ_ONLY)) as bob:
        paths = [path for path in await paths_of(api) if "/self" not in path]  # questions about oneself
        assert len(paths) > 100
        for path in paths:
            for method in ("POST", "PUT", "PATCH", "DELETE"):
                answer = await bob(method, path, {}, Content_Type="application/merge-patch+json")
                assert answer.status == 403, (method, path, answer.text)
    assert plane.store.resource_version == revision


ROUND = (
    "/api/v1/namespaces/default/serviceaccounts/x/token", "/api/v1/namespaces/default/pods/x/eviction",
    "/api/v1/namespaces/default/pods/x/exec", f"{WIDGETS}/a/", f"/{WIDGETS}/a", f"{SECRETS}/../configmaps",
    "/api/v1//namespaces/default/secrets", f"{SECRETS}/", f"{WIDGETS}/a?dryRun=All",
    "/apis/authentication.k8s.io/v1/tokenreviews", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
)  # fmt: skip


async def test_ways_round_it_are_none(plane: APIServer, api: Client, tmp_path: Path) -> None:
    await api.create(WIDGETS, widget("a", 1))
    revision = plane.store.resource_version
    async with client_of(plane, token=give(tmp_path, "bob", Role.READ_ONLY)) as bob:
        for path in ROUND:
            for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "FOO", "HEAD"):
                assert (await bob(method, path, {})).status in {400, 403, 404, 405}, (method, path)
    assert plane.store.resource_version == revision


async def test_questions_about_oneself_are_answered_truly(plane: APIServer, tmp_path: Path) -> None:
    async def may(client: Client, verb: str, resource: str, group: str = "") -> bool:
        attributes = {"verb": verb, "resource": resource, "group": group, "namespace": "default"}
        body = {"spec": {"resourceAttributes": attributes}}
        answer: dict[str, Any] = await client.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
        return bool(answer["status"]["allowed"])

    async with client_of(plane, token=give(tmp_path, "bob", Role.READ_ONLY)) as bob:
        assert await may(bob, "list", "machines", "cluster.k8s.io")
        for verb, resource, group in (
            ("create", "pods", ""), ("list", "secrets", ""), ("*", "pods", ""), ("list", "*", "*"), ("delete", "x", ""),
        ):  # fmt: skip
            assert not await may(bob, verb, resource, group), (verb, resource)
        rules = await bob.create("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {}})
        assert rules["status"]["resourceRules"] == []
        assert rules["status"]["incomplete"] is True


async def test_who_is_removed_is_out_at_the_next_request_and_their_watches_end(
    plane: APIServer, tmp_path: Path
) -> None:
    token = give(tmp_path, "bob", Role.READ_ONLY)
    async with client_of(plane, token=token) as bob, client_of(plane) as admin:
        await bob.get(MAPS)
        await admin.create(MAPS, {"metadata": {"name": "a"}})
        async with bob.watch(MAPS, "resourceVersion=0") as events:
            assert await events.seen(1) == [("ADDED", "a")]
            write(tmp_path / USERS_FILE, ())
            await admin.get(MAPS)
            assert await events.next() is None
        assert (await bob("GET", MAPS)).status == 401


async def test_with_a_damaged_file_nobody_of_it_has_access(plane: APIServer, api: Client, tmp_path: Path) -> None:
    token = give(tmp_path, "ann", Role.ADMIN)
    async with client_of(plane, token=token) as ann:
        await ann.get(MAPS)
        (tmp_path / USERS_FILE).write_text("{}")
        assert (await ann("GET", MAPS)).status == 401
        await api.get(MAPS)


def test_the_file_is_private_and_holds_no_token(tmp_path: Path) -> None:
    token = give(tmp_path, "ann", Role.ADMIN)
    path = tmp_path / USERS_FILE
    assert path.stat().st_mode & 0o777 == 0o600
    assert token not in path.read_text()
    users = Users(path, lambda: None, lambda: START)
    found = users.find(token)
    assert found is not None
    assert found.name == "ann"
    assert users.find(found.hash) is None, "a hash is no token"
    assert users.find("") is None


class Clock:
    """Shows what it is set to."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


def test_a_token_ends_at_its_time_and_watches_end_with_it(tmp_path: Path) -> None:
    ann, token = new_person("ann", Role.ADMIN, "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z")
    bob, other = new_person("bob", Role.READ_ONLY, "2026-01-01T00:00:00Z")
    write(tmp_path / USERS_FILE, (ann, bob))
    clock, losses = Clock(), list[None]()
    users = Users(tmp_path / USERS_FILE, lambda: losses.append(None), clock)
    clock.now += timedelta(hours=1, seconds=-1)
    assert users.find(token) == ann
    assert losses == []
    clock.now += timedelta(seconds=1)
    users.refresh()  # a request of anybody
    assert len(losses) == 1
    assert users.find(token) is None
    assert users.find(other) == bob, "one without an end stays"
    assert len(losses) == 1, "it is cut once"


def test_a_clock_that_goes_back_revives_no_token_but_a_renewal_does(tmp_path: Path) -> None:
    ann, token = new_person("ann", Role.ADMIN, "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z")
    write(tmp_path / USERS_FILE, (ann,))
    clock = Clock()
    users = Users(tmp_path / USERS_FILE, lambda: None, clock)
    clock.now += timedelta(hours=2)
    assert users.find(token) is None
    clock.now = START
    assert users.find(token) is None
    write(tmp_path / USERS_FILE, (replace(ann, until="2026-01-01T03:00:00Z"),))
    assert users.find(token) is not None


@pytest.mark.parametrize("until", ["soon", 7, "2026-01-01", "2026-01-01T00:00:00"])
def test_an_end_that_is_no_time_is_damage(tmp_path: Path, until: Any) -> None:
    person = {"name": "a", "role": "admin", "hash": "0" * 64, "since": "", "until": until}
    (tmp_path / USERS_FILE).write_text(json.dumps({"users": [person]}))
    with pytest.raises(UsersError, match="the end of a's token, is no time"):
        read(tmp_path / USERS_FILE)


async def test_a_token_that_has_ended_is_refused_by_the_api_server(plane: APIServer, tmp_path: Path) -> None:
    person, token = new_person("ann", Role.ADMIN, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
    write(tmp_path / USERS_FILE, (person,))
    async with client_of(plane, token=token) as ann:
        assert (await ann("GET", MAPS)).status == 401


@pytest.mark.parametrize("name", ["", "system:admin", "A", "a/b", "-a", "a" * 64, "a\nb", "ä"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(UsersError, match="is no name"):
        new_person(name, Role.ADMIN, "")


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[]", b'{"users": 1}', b"\xff", json.dumps({"users": [{"name": "a"}]}).encode(),
        json.dumps({"users": [{"name": "a", "role": "root", "hash": "0" * 64, "since": ""}]}).encode(),
        json.dumps({"users": [{"name": "a", "role": "admin", "hash": "", "since": ""}]}).encode(),
        json.dumps({"users": [{"name": "system:x", "role": "admin", "hash": "0" * 64, "since": ""}]}).encode(),
    ],
)  # fmt: skip
def test_a_file_that_is_damaged_says_so(tmp_path: Path, content: bytes) -> None:
    (tmp_path / USERS_FILE).write_bytes(content)
    with pytest.raises(UsersError, match="is damaged"):
        read(tmp_path / USERS_FILE)
