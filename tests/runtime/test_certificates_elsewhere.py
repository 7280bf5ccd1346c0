"""Certificate requests of kubelets in workload clusters: one process approves them there, and only there."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from controllers.certificatesigningrequest import plan as deciding
from controllers.kernel.refs import CERTIFICATE_SIGNING_REQUEST, NODE, Key, Obj, Ref
from nodewright.apiserver.app.faults import Match
from nodewright.apiserver.values import ApiError as ServerError
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.kubeconfig import load_kubeconfig
from nodewright.runtime.settings import wiring
from tests.controllers.certificatesigningrequest.requests import RequestBuilder, dns, ips, serving
from tests.runtime.country import Country, Elsewhere
from tests.runtime.town import Town


@pytest.fixture
def country(town: Town, tmp_path: Path) -> Country:
    approver = wiring.on_request()["certificatesigningrequest"]()
    town.options = replace(town.options, reconcilers=(*wiring.reconcilers(), approver))
    return Country(town, tmp_path)


def _decided(csrs: list[Any]) -> dict[str, str]:
    return {
        csr["metadata"]["name"]: c["type"] for csr in csrs for c in (csr.get("status") or {}).get("conditions") or ()
    }


def _of(machine: Obj, name: str = "csr") -> RequestBuilder:
    """A serving certificate for the host of ``machine``, asked for by its kubelet."""
    node = machine["status"]["nodeRef"]["name"]
    (address,) = [a["address"] for a in machine["status"]["addresses"] if a["type"] == "InternalIP"]
    csr = serving(name).asking(common_name=f"system:node:{node}", alternatives=(*dns(node), *ips(address)))
    return csr.by(f"system:node:{node}", "system:nodes")


def _body(csr: RequestBuilder) -> dict[str, Any]:
    body = csr.build()
    return {**body, "metadata": {"name": body["metadata"]["name"]}}


async def _ask(where: Elsewhere, csr: RequestBuilder) -> None:
    async with KubeClient(await load_kubeconfig([where.running.kubeconfig_path]), "tests") as client:
        await client.create(CERTIFICATE_SIGNING_REQUEST, _body(csr))


async def test_a_kubelet_gets_its_certificate_in_the_cluster_of_its_machine_and_in_no_other(country: Country) -> None:
    town = country.town
    async with country.elsewhere("blue", "green") as (blue, green), town.controllers() as manager:
        for name in ("blue", "green"):
            await country.machine_set(name, 1)
        await town.machine_set("home", 1)
        await town.until(lambda: town.ready() == 3)
        (machine,) = country.machines("blue")
        (other,) = country.machines("green")
        (home,) = country.machines("home")
        await _ask(green, _of(machine, "of-blue"))
        await town.client.create(CERTIFICATE_SIGNING_REQUEST, _body(_of(machine, "of-blue")))
        await _ask(blue, _of(other, "of-green"))
        await _ask(blue, _of(home, "of-home"))
        await _ask(blue, _of(machine, "mine"))
        await _ask(green, _of(other, "mine"))
        await town.client.create(CERTIFICATE_SIGNING_REQUEST, _body(_of(home, "mine")))
        await town.until(
            lambda: all(_decided(p.objects(CERTIFICATE_SIGNING_REQUEST)).get("mine") for p in (blue, green, town))
        )
        (approver,) = [c for c in manager.controllers if c.reconciler.name == "certificatesigningrequest"]
        await town.until(lambda: approver.queue.idle)
        for plane in (blue, green, town):
            assert _decided(plane.objects(CERTIFICATE_SIGNING_REQUEST)) == {"mine": "Approved"}


async def test_requests_that_came_before_the_controllers_and_in_an_outage_are_approved(country: Country) -> None:
    town = country.town
    async with country.elsewhere("blue") as (blue,):
        async with town.controllers():
            await country.machine_set("blue", 1)
            await town.until(lambda: country.ready("blue") == 1)
            (machine,) = country.machines("blue")
        await _ask(blue, _of(machine, "before"))
        # Simulated hosts live on; the Nodes were made by the first run.
        async with town.controllers():
            await town.until(lambda: "before" in _decided(blue.objects(CERTIFICATE_SIGNING_REQUEST)))
            await blue.stop()
            await town.until(lambda: country.said("blue").get("status") == "False")
            await blue.start()
            await _ask(blue, _of(machine, "after"))
            await town.until(lambda: "after" in _decided(blue.objects(CERTIFICATE_SIGNING_REQUEST)))


async def test_a_kubeconfig_without_the_right_to_requests_leaves_the_rest_of_the_cluster_at_work(
    country: Country,
) -> None:
    town = country.town
    async with country.elsewhere("blue") as (blue,):
        refused = Match(resource="certificatesigningrequests.certificates.k8s.io")
        blue.running.faults.answer(ServerError(403, "Forbidden", "no right"), refused, times=100_000)
        async with town.controllers():
            await country.machine_set("blue", 1)
            await town.until(lambda: country.ready("blue") == 1)
            assert country.said("blue")["status"] == "True"
            await town.until(lambda: "certificatesigningrequests" in country.said("blue")["message"])
            said = country.said("blue")["message"]
            assert said.startswith("by Secret blue-kubeconfig; certificates of its kubelets are not approved")
            assert "no right" not in said, "nothing of what another API server wrote is quoted"
            (machine,) = country.machines("blue")
            blue.running.faults.clear()
            await _ask(blue, _of(machine, "mine"))
            await town.until(lambda: _decided(blue.objects(CERTIFICATE_SIGNING_REQUEST)) == {"mine": "Approved"})
            await town.until(lambda: country.said("blue")["message"] == "by Secret blue-kubeconfig")


async def test_nobody_gets_a_certificate_that_serves_in_the_name_of_the_workload_clusters_server(
    country: Country,
) -> None:
    """The host of ``blue``'s own kubeconfig, and no host of the management cluster, is the API server's there."""
    town = country.town
    async with country.elsewhere("blue") as (blue,):
        config = blue.kubeconfig().replace(b"127.0.0.1", b"localhost")
        await country.rewrite_secret("blue", config)
        async with town.controllers() as manager:
            await country.machine_set("blue", 1)
            await town.until(lambda: country.ready("blue") == 1)
            site = manager.workloads.look(Key("default", "blue"))
            assert site is not None
            assert getattr(site.workload, "servers", None) == frozenset({"localhost"})


async def test_no_process_that_was_not_asked_to_reads_requests_anywhere(town: Town, tmp_path: Path) -> None:
    country = Country(town, tmp_path)
    async with country.elsewhere("blue") as (_,), town.controllers() as manager:
        await town.until(lambda: country.said("blue").get("status") == "True")
        site = manager.workloads.look(Key("default", "blue"))
        assert site is not None
        assert site.place is not None
        assert CERTIFICATE_SIGNING_REQUEST not in site.place.cache.stores
        assert NODE in site.place.cache.stores


async def test_a_request_that_is_gone_leaves_nothing_behind(country: Country) -> None:
    town = country.town
    async with country.elsewhere("blue") as (blue,), town.controllers() as manager:
        await country.machine_set("blue", 1)
        await town.until(lambda: country.ready("blue") == 1)
        (machine,) = country.machines("blue")
        await _ask(blue, _of(machine, "mine"))
        await town.until(lambda: _decided(blue.objects(CERTIFICATE_SIGNING_REQUEST)) == {"mine": "Approved"})
        async with KubeClient(await load_kubeconfig([blue.running.kubeconfig_path]), "tests") as client:
            await client.delete(Ref(CERTIFICATE_SIGNING_REQUEST, Key("", "mine")))
        (approver,) = [c for c in manager.controllers if c.reconciler.name == "certificatesigningrequest"]
        await town.until(lambda: not len(approver.host_looks) and approver.queue.idle)


async def test_requests_go_with_their_machines_in_each_cluster(
    country: Country, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deciding, "FETCHED", timedelta(0))
    town = country.town
    async with country.elsewhere("blue") as (blue,), town.controllers():
        for name in ("blue", "green"):
            await country.cluster("green") if name == "green" else None
            await country.machine_set(name, 1)
        await town.until(lambda: town.ready() == 2)
        await _ask(blue, _of(country.machines("blue")[0], "mine"))
        home = _of(country.machines("green")[0], "mine")
        await town.client.create(CERTIFICATE_SIGNING_REQUEST, _body(home))
        await town.until(
            lambda: all(_decided(p.objects(CERTIFICATE_SIGNING_REQUEST)) == {"mine": "Approved"} for p in (blue, town))
        )
        for name in ("blue", "green"):
            await town.scale(name, 0)
        await town.until(lambda: not any(p.objects(CERTIFICATE_SIGNING_REQUEST) for p in (blue, town)))
