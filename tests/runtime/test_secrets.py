"""A story full of secrets, told by a provider that can't keep any: none is in a log, an Event, a status or a metric."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
import structlog
from prometheus_client import generate_latest

from api.secrets import is_secret_name, secret_values, without_secrets
from controllers.kernel.refs import CLUSTER, EVENT, MACHINE, NODE, SECRET, Key, Ref
from nodewright.runtime.kube.connection import StaticToken
from nodewright.runtime.telemetry import logs, metrics
from providers.base.contract import ConfigKind, Host, HostRequest, Registration, UpdateAnswer, Updated
from providers.base.errors import ErrorClass, ProviderError
from providers.base.registry import Registry
from tests.runtime.country import IMPATIENT
from tests.runtime.town import Town

PASSWORD, USER_DATA, KEY = "MARKED-password-1", "MARKED-user-data-2", "MARKED-secret-3"
SCHEMA = {"type": "object", "properties": {"password": {"type": "string"}, "userData": {"type": "string"}}}
FAKE = {"apiVersion": "leaky.dev/v1", "kind": "Leaky"}


class LeakyCloud:
    """Quotes the whole request whenever it refuses one."""

    async def create(self, request: HostRequest) -> Host:
        quoted = json.dumps(dict(request.config))
        if request.identity.name == "refused":
            raise ProviderError(ErrorClass.INVALID_CONFIGURATION, f"400 Bad Request: {quoted}")
        raise RuntimeError(f"unexpected answer to {quoted}, sent with Authorization: Bearer {KEY}")

    async def delete(self, host: Host) -> None:
        """There is none."""

    async def list(self) -> tuple[Host, ...]:
        return ()

    async def update(self, request: HostRequest, host: Host, drained: bool) -> UpdateAnswer:
        return Updated()


def _open(_scope: str, _config: Mapping[str, Any]) -> Any:
    return LeakyCloud()


REGISTRY = Registry.of(Registration("leaky", (ConfigKind("leaky.dev/v1", "Leaky", SCHEMA),), lambda _: "a", _open))


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    stream = io.StringIO()
    logs.configure(json=True, level="debug", stream=stream)
    structlog.configure(cache_logger_on_first_use=False)  # the loggers of modules outlive this test
    yield stream
    root.handlers[:] = before
    root.setLevel(level)
    structlog.reset_defaults()


MACHINES: dict[str, Any] = {
    "refused": {"value": {**FAKE, "password": PASSWORD, "userData": USER_DATA}},
    "unexpected": {"value": {**FAKE, "password": PASSWORD, "userData": USER_DATA}},
    "wrong-type": {"value": {**FAKE, "userData": 1, "password": {"value": PASSWORD}}},
    "wrong-type-too": {"value": {**FAKE, "password": 112233445566}},
    "unreadable": f"password: {PASSWORD}: {USER_DATA}\n",
}


TOKEN = "MARKED-cluster-token-4"
KUBECONFIGS = {
    "away": (
        "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
        "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\n"
        f"users: [{{name: a, user: {{token: {TOKEN}}}}}]\n"
    ),
    "garbled": f"users:\n- token: {TOKEN}: {TOKEN}\n",
}


async def clusters(town: Town) -> None:
    """Two Clusters whose kubeconfigs lead nowhere."""
    for name, text in KUBECONFIGS.items():
        meta = {"name": f"{name}-kubeconfig", "namespace": "default"}
        await town.client.create(
            SECRET, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"value": text}}
        )
        network = {"services": {"cidrBlocks": ["10.0.0.0/16"]}, "pods": {"cidrBlocks": ["10.1.0.0/16"]}}
        spec = {"clusterNetwork": {**network, "serviceDomain": "cluster.local"}}
        meta = {"name": name, "namespace": "default"}
        body = {"apiVersion": CLUSTER.api_version, "kind": "Cluster", "metadata": meta, "spec": spec}
        await town.client.create(CLUSTER, body)


def unreachable(town: Town) -> int:
    said = [c for obj in town.objects(CLUSTER) for c in (obj.get("status") or {}).get("conditions") or ()]
    return sum(c["type"] == "Reachable" and c["status"] != "True" and bool(c.get("message")) for c in said)


async def test_no_secret_is_told(town: Town, lines: io.StringIO) -> None:
    admin = (town.plane.kubeconfig_path.parent / "token").read_text().strip()
    town.connection = replace(town.connection, client_certificate=b"", client_key=b"", tokens=StaticToken(admin))
    town.options = replace(town.options, registry=REGISTRY, simulated_kubelets=False, workloads=IMPATIENT)
    meta = {"name": "cloud", "namespace": "default"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"password": KEY}}
    await town.client.create(SECRET, secret)
    await clusters(town)
    async with town.controllers() as manager:
        for name, config in MACHINES.items():
            await town.client.create(MACHINE, machine(name, config))
        await town.until(lambda: all(told(town, name) for name in MACHINES))
        await town.until(lambda: unreachable(town) == len(KUBECONFIGS))
        for name in MACHINES:
            await town.client.delete(Ref(MACHINE, Key("default", name)))
        shown = [obj.get("status") for obj in town.objects(MACHINE) + town.objects(CLUSTER)] + town.objects(NODE)
        await town.until(lambda: not town.objects(MACHINE))
        counted = generate_latest(metrics.REGISTRY).decode()
        counted += str([sample for family in manager.families() for sample in family.samples])  # type: ignore[attr-defined]
    text = "\n".join(
        [lines.getvalue(), json.dumps(shown, default=str), json.dumps(town.objects(EVENT), default=str), counted]
    )
    assert "Bad Request" in text, "the story was told"
    assert "unexpected answer" in lines.getvalue()
    for hidden in (PASSWORD, USER_DATA, KEY, TOKEN, admin, "112233445566"):
        places = [text[max(at - 120, 0) : at + 20] for at in [text.find(hidden)] if at >= 0]
        assert not places, places


async def test_every_line_of_a_round_names_its_object(town: Town, lines: io.StringIO) -> None:
    town.options = replace(town.options, registry=REGISTRY, simulated_kubelets=False)
    async with town.controllers():
        await town.client.create(MACHINE, machine("refused", MACHINES["refused"]))
        await town.until(lambda: told(town, "refused"))
    uid = town.objects(MACHINE)[0]["metadata"]["uid"]
    said = [json.loads(line) for line in lines.getvalue().splitlines()]
    for event in ("action", "provider call failed"):
        found = [line for line in said if line["event"] == event and line.get("controller") == "machine"]
        assert found, event
        for line in found:
            names = {key: line[key] for key in ("controller", "kind", "namespace", "name", "uid")}
            assert names == {
                "controller": "machine", "kind": "Machine", "namespace": "default", "name": "refused", "uid": uid,
            }  # fmt: skip


def machine(name: str, config: Any) -> dict[str, Any]:
    return {
        "apiVersion": MACHINE.api_version,
        "kind": "Machine",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"versions": {"kubelet": "1.34.0"}, "providerConfig": config},
    }


def told(town: Town, name: str) -> bool:
    """Something about the Machine's trouble is in its status."""
    status = next((m.get("status") or {} for m in town.objects(MACHINE) if m["metadata"]["name"] == name), {})
    conditions = status.get("conditions") or []
    return any(condition["status"] == "False" and condition.get("message") for condition in conditions)


@pytest.mark.parametrize(
    "name", ["password", "clientSecret", "userData", "user_data", "private-key", "cloudConfig", "APIToken"]
)
def test_a_name_that_tells(name: str) -> None:
    assert is_secret_name(name.replace("-", "_"))


@pytest.mark.parametrize("name", ["size", "image", "zone", "key", "user"])
def test_a_name_that_tells_nothing(name: str) -> None:
    assert not is_secret_name(name)


def test_secrets_are_found_however_deep() -> None:
    value = {"auth": {"password": "12345678", "user": "me"}, "secrets": [{"x": "abcd"}, "ab"], "token": None}
    assert sorted(secret_values(value)) == ["12345678", "abcd"]


def test_what_is_no_secret_stays() -> None:
    assert without_secrets("https://example.test:6443/api refused") == "https://example.test:6443/api refused"


def test_where_a_secret_is_is_no_secret() -> None:
    value = {"cloud": {"secretName": "blue-cloud"}, "userData": {"secretName": "worker", "text": "abcd"}}
    assert sorted(secret_values(value)) == ["abcd"]
