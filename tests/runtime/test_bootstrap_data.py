"""Bootstrap data over a real API: tokens and Secrets come before the host, and go when its Node has joined."""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import structlog

from api import names
from controllers.bootstrap.calls import data_of
from controllers.bootstrap.credentials import secret_key, token_ids, token_key
from controllers.kernel.conditions import find
from controllers.kernel.refs import (
    CONFIG_MAP,
    EVENT,
    MACHINE,
    MACHINE_SET,
    NAMESPACE,
    SECRET,
    Obj,
    Ref,
    key_of,
    uid_of,
)
from nodewright.apiserver.app.stats import WRITES
from tests.runtime.town import FAST, Town

MACHINES = 5
SERVER = "https://10.9.8.7:6443"
OURS = {names.BOOTSTRAP_SECRET_TYPE, names.TOKEN_SECRET_TYPE}
WRITES_TO_READY = {
    "create machines.cluster.k8s.io": 1,
    "create secrets": 2,
    "patch machines.cluster.k8s.io": 1,
    "patch nodes": 1,
    "patch machines.cluster.k8s.io/status": 2,
}
"""For each Machine, as docs/tasks/join.md lists them; two deletions of Secrets follow."""
ONCE = {
    "create namespaces": 1,
    "create roles.rbac.authorization.k8s.io": 1,
    "create rolebindings.rbac.authorization.k8s.io": 1,
    "create machinesets.cluster.k8s.io": 1,
    "patch machinesets.cluster.k8s.io": 1,
    "patch machinesets.cluster.k8s.io/status": 10,
}
"""Of the process, of the test itself, and of the set, however many Machines it has."""
NEVER_JOINS = {"bootSeconds": 3000.0}
KUBELET = "1.32.1"


@asynccontextmanager
async def working(town: Town, server: str = SERVER) -> AsyncIterator[None]:
    """The controllers on a cluster that says of itself where it is, as kubeadm's do."""
    there = {key_of(each).name for each in town.objects(NAMESPACE)}
    for name in {"kube-public", "kube-system"} - there:
        await town.client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    document = {"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "", "cluster": {"server": server}}]}
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-info", "namespace": "kube-public"},
        "data": {"kubeconfig": json.dumps(document)},
    }
    await town.client.create(CONFIG_MAP, body)
    async with town.controllers():
        town.plane.stats.reset()
        yield


async def machine_set(town: Town, replicas: int, *, config: dict[str, Any] | None = None, **spec: Any) -> None:
    labels = {"pool": "ms"}
    wanted = {
        "versions": {"kubelet": KUBELET},
        "bootstrap": {},
        "providerConfig": {"value": {**FAST, **(config or {})}},
        **spec,
    }
    body = {
        "apiVersion": MACHINE_SET.api_version,
        "kind": "MachineSet",
        "metadata": {"name": "ms", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": wanted},
        },
    }
    await town.client.create(MACHINE_SET, body)


def secrets_of(town: Town, *types: str) -> list[Obj]:
    return [secret for secret in town.objects(SECRET) if secret.get("type") in (types or OURS)]


def condition(town: Town, type_: str) -> dict[str, Any]:
    """Of the first Machine; {} while it says nothing."""
    machine = next(iter(town.objects(MACHINE)), {})
    return dict(find((machine.get("status") or {}).get("conditions"), type_) or {})


def writes(town: Town) -> Counter[str]:
    """Of the controllers, by verb and resource."""
    found: Counter[str] = Counter()
    for key, count in town.plane.stats.snapshot().items():
        if key.user_agent == "nodewright" and key.verb in WRITES and key.resource != "events":
            found["/".join(filter(None, (f"{key.verb} {key.resource}", key.subresource)))] += count
    return found


def test_the_list_of_writes_is_the_one_in_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs/tasks/join.md").read_text()
    total = sum(WRITES_TO_READY.values())
    assert f"A Machine costs at most {total} API writes until it is Ready" in text


async def test_machines_join_by_a_token_each_and_nothing_of_it_is_left(town: Town) -> None:
    async with working(town):
        await machine_set(town, MACHINES)
        await town.until(lambda: town.ready() == MACHINES)
        await town.until(lambda: not secrets_of(town))
        machines = town.objects(MACHINE)
        ids = {machine["metadata"]["annotations"][names.BOOTSTRAP_TOKEN_ANNOTATION] for machine in machines}
        assert ids == {token_ids(uid_of(machine))[0] for machine in machines}
        for type_ in ("NodeJoined", "BootstrapDataReady", "Ready"):
            assert condition(town, type_)["status"] == "True"
        counted = writes(town)
    allowed = {name: each * MACHINES for name, each in WRITES_TO_READY.items()}
    allowed |= {"delete secrets": 2 * MACHINES, **ONCE}
    assert {name: count for name, count in counted.items() if count > allowed.get(name, 0)} == {}
    assert counted["create secrets"] == counted["delete secrets"] == 2 * MACHINES


async def test_a_machine_that_comes_up_has_a_token_and_data_that_hold_it(town: Town) -> None:
    async with working(town):
        with structlog.testing.capture_logs() as lines:
            await machine_set(town, 1, config=NEVER_JOINS)
            await town.until(lambda: town.hosts() == 1)
        machine = town.objects(MACHINE)[0]
        kept = data_of(await town.client.get(SECRET, secret_key(key_of(machine))))
        token = await town.client.get(SECRET, token_key(token_ids(uid_of(machine))[0]))
        said = data_of(token)
        assert kept["token"] == f"{said['token-id']}.{said['token-secret']}"
        assert kept["format"] == "cloud-config"
        assert kept["userData"].startswith("#cloud-config\n")
        assert (
            said["auth-extra-groups"]
            == "system:bootstrappers:kubeadm:default-node-token,system:bootstrappers:nodewright"
        )
        assert said["usage-bootstrap-authentication"] == "true"
        assert "usage-bootstrap-signing" not in said
        told = repr([town.objects(MACHINE), town.objects(MACHINE_SET), town.objects(EVENT), lines])
        assert said["token-secret"] not in told
        await town.scale("ms", 0)
        await town.until(lambda: not town.objects(MACHINE))
        await town.until(lambda: not secrets_of(town))


async def test_no_endpoint_is_said_with_the_field_and_nothing_is_made(town: Town) -> None:
    async with working(town, "https://127.0.0.1:6443"):
        await machine_set(town, 1)
        await town.until(lambda: condition(town, "BootstrapDataReady").get("reason") == "NoEndpoint")
        assert "spec.bootstrap.endpoint" in condition(town, "BootstrapDataReady")["message"]
        assert condition(town, "Ready")["reason"] == "NoEndpoint"
        assert not secrets_of(town)
        assert town.hosts() == 0


async def test_a_kubelet_newer_than_the_api_server_is_refused_before_anything_is_made(town: Town) -> None:
    async with working(town):
        await machine_set(town, 1, versions={"kubelet": "1.99.0"})
        await town.until(lambda: condition(town, "BootstrapDataReady").get("reason") == "VersionSkew")
        assert "spec.versions.kubelet" in condition(town, "BootstrapDataReady")["message"]
        assert not secrets_of(town)
        assert town.hosts() == 0


async def test_a_token_that_got_lost_is_made_again_as_it_was(town: Town) -> None:
    async with working(town):
        await machine_set(town, 1, config=NEVER_JOINS)
        await town.until(lambda: town.hosts() == 1)
        before = secrets_of(town, names.TOKEN_SECRET_TYPE)[0]
        await town.client.delete(Ref(SECRET, key_of(before), uid_of(before)))
    async with town.controllers():
        await town.until(lambda: bool(secrets_of(town, names.TOKEN_SECRET_TYPE)))
        again = secrets_of(town, names.TOKEN_SECRET_TYPE)[0]
        assert uid_of(again) != uid_of(before)
        assert data_of(again)["token-secret"] == data_of(before)["token-secret"]


async def test_without_spec_bootstrap_nothing_is_made(town: Town) -> None:
    async with working(town):
        await machine_set(town, 1, bootstrap=None)
        await town.until(lambda: town.ready() == 1)
        assert not writes(town)["create secrets"]
        assert not condition(town, "BootstrapDataReady")


async def test_a_file_may_come_from_a_secret_that_comes_later(town: Town) -> None:
    """No spec, no condition and no event has its content; the host's data has it."""
    secret = "the-content-of-the-file"
    source = {"secret": {"name": "creds", "key": "token"}}
    async with working(town):
        await machine_set(
            town, 1, config=NEVER_JOINS, bootstrap={"files": [{"path": "/etc/creds", "contentFrom": source}]}
        )
        missing = "spec.bootstrap.files[0].contentFrom: Secret default/creds does not exist"
        await town.until(lambda: missing in condition(town, "BootstrapDataReady").get("message", ""))
        assert town.hosts() == 0
        body = {
            "apiVersion": "v1", "kind": "Secret", "type": names.HOST_FILES_SECRET_TYPE,
            "metadata": {"name": "creds", "namespace": "default"},
            "data": {"token": base64.b64encode(secret.encode()).decode()},
        }  # fmt: skip
        await town.client.create(SECRET, body)
        await town.until(lambda: town.hosts() == 1)
    (data,) = secrets_of(town, names.BOOTSTRAP_SECRET_TYPE)
    document = json.loads(data_of(data)[names.BOOTSTRAP_DATA_KEY].removeprefix("#cloud-config\n"))
    script = gzip.decompress(base64.b64decode(document["write_files"][0]["content"])).decode()
    assert base64.b64encode(secret.encode()).decode() in script
    told = json.dumps([town.objects(kind) for kind in (MACHINE, MACHINE_SET, EVENT)])
    assert secret not in told
    assert base64.b64encode(secret.encode()).decode() not in told
