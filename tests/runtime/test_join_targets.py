"""Where hosts are told to join: addresses that they can reach, and a CA that they can trust."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from controllers.kernel.bootstrapping import JoinTarget, NoTarget
from controllers.kernel.refs import Key, Kind
from nodewright.apiserver.app.authority import load_or_create
from nodewright.runtime.bootstrap.targets import FORGET, HELD, OUTLASTS, Site, Targets, ca_fault, is_reachable
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.kube.errors import ApiError, NoAnswer
from tests.builders import NOW
from tests.runtime.virtual_time import virtual_time


@pytest.mark.parametrize(
    ("server", "reachable"),
    [
        ("https://10.0.0.1:6443", True),
        ("https://api.example.com", True),
        ("https://[fd00::1]:6443", True),
        ("https://127.0.0.1:6443", False),
        ("https://[::1]:6443", False),
        ("https://0.0.0.0:6443", False),
        ("https://169.254.1.1", False),
        ("https://localhost:6443", False),
        ("https://kubernetes.default.svc", False),
        ("https://kubernetes.default.svc.cluster.local:443", False),
        ("http://10.0.0.1:6443", False),
        ("https://10.0.0.1:6443/proxy/prod", False),
        ("", False),
        ("nonsense", False),
    ],
)
def test_only_an_address_that_a_host_can_reach_counts(server: str, reachable: bool) -> None:
    assert is_reachable(server) is reachable


def test_a_ca_has_to_be_there_readable_and_valid(tmp_path: Path) -> None:
    load_or_create(tmp_path / "ca.crt", tmp_path / "ca.key", NOW)
    pem = (tmp_path / "ca.crt").read_bytes()
    assert ca_fault(pem, NOW) == ""
    assert "expired" in ca_fault(pem, NOW + timedelta(days=4000))
    assert "not known" in ca_fault(b"", NOW)
    assert "no PEM" in ca_fault(b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n", NOW)
    assert "larger" in ca_fault(b"x" * 100_000, NOW)


class Answering:
    """A client of an API server that says all that a host needs."""

    def __init__(self, pem: bytes) -> None:
        self.connection = Connection("https://10.0.0.1:6443", ca=pem)

        self.away = False

    async def version(self) -> dict[str, str]:
        if self.away:
            raise NoAnswer("the connection was refused", sent=False)
        return {"gitVersion": "v1.34.0"}

    async def get(self, kind: Kind, key: Key) -> dict[str, object]:
        raise ApiError(404, "NotFound", "")


@virtual_time
async def test_clusters_that_nobody_asks_for_are_forgotten(tmp_path: Path) -> None:
    load_or_create(tmp_path / "ca.crt", tmp_path / "ca.key", NOW)
    client: Any = Answering((tmp_path / "ca.crt").read_bytes())
    targets = Targets(lambda cluster: Site(client, str(cluster), is_workload=True), lambda: NOW, lambda _: None)

    async def asked(name: str) -> JoinTarget:
        while not isinstance(found := targets.look(Key("default", name), ""), JoinTarget):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        return found

    for number in range(50):
        await asked(f"c{number}")
    for _ in range(3):
        await asyncio.sleep(FORGET / 2)
        await asked("kept")
        await asyncio.sleep(HELD + 1)
        await asked("kept")
    assert [str(key) for key in targets._known] == ["default/kept"]
    assert (await asked("c1")).server == "https://10.0.0.1:6443", "it comes back when it is asked for"
    await targets.close()


@virtual_time
async def test_what_was_answered_outlasts_an_api_server_that_is_away_for_a_moment(tmp_path: Path) -> None:
    """As in its own upgrade, whose steps are asked for again and again meanwhile."""
    load_or_create(tmp_path / "ca.crt", tmp_path / "ca.key", NOW)
    client: Any = Answering((tmp_path / "ca.crt").read_bytes())
    targets = Targets(lambda cluster: Site(client, str(cluster), is_workload=True), lambda: NOW, lambda _: None)

    async def looks(seconds: float) -> JoinTarget | NoTarget | None:
        for _ in range(int(seconds)):
            targets.look(Key("default", "c"), "")
            await asyncio.sleep(1)
        return targets.look(Key("default", "c"), "")

    assert isinstance(await looks(2), JoinTarget)
    client.away = True
    assert isinstance(await looks(OUTLASTS - HELD), JoinTarget)
    assert isinstance(gone := await looks(2 * HELD), NoTarget)
    assert gone.reason == "WorkloadUnreachable"
    client.away = False
    assert isinstance(await looks(HELD), JoinTarget)
    await targets.close()
