"""Certificate requests of kubelets in the running program, on the embedded control plane."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from controllers.kernel.refs import CERTIFICATE_SIGNING_REQUEST, MACHINE
from nodewright.runtime.settings import wiring
from tests.controllers.certificatesigningrequest.requests import RequestBuilder, dns, ips, serving
from tests.runtime.town import Town


def _decisions(town: Town) -> dict[str, str]:
    return {
        csr["metadata"]["name"]: c["type"]
        for csr in town.objects(CERTIFICATE_SIGNING_REQUEST)
        for c in (csr.get("status") or {}).get("conditions") or ()
    }


def _body(csr: RequestBuilder) -> dict[str, Any]:
    body = csr.build()
    return {**body, "metadata": {"name": body["metadata"]["name"]}}


@pytest.fixture
def with_certificates(town: Town) -> Town:
    town.options = replace(
        town.options, reconcilers=(*wiring.reconcilers(), wiring.on_request()["certificatesigningrequest"]())
    )
    return town


async def test_a_kubelet_gets_its_serving_certificate_approved_and_another_does_not(with_certificates: Town) -> None:
    town = with_certificates
    async with town.controllers():
        await town.machine_set("ms", 1)
        await town.until(lambda: town.ready() == 1)
        (machine,) = town.objects(MACHINE)
        name = machine["status"]["nodeRef"]["name"]
        (address,) = [a["address"] for a in machine["status"]["addresses"] if a["type"] == "InternalIP"]
        itself = {"common_name": f"system:node:{name}"}
        good = serving("good").asking(**itself, alternatives=(*dns(name), *ips(address)))
        bad = serving("bad").asking(**itself, organizations=("system:masters",), alternatives=dns(name))
        for csr in (good, bad):
            csr.by(f"system:node:{name}", "system:nodes")
            await town.client.create(CERTIFICATE_SIGNING_REQUEST, _body(csr))
        await town.until(lambda: len(_decisions(town)) == 2)
        assert _decisions(town) == {"good": "Approved", "bad": "Denied"}


def test_certificates_are_only_approved_by_who_was_asked_to() -> None:
    """It needs rights that a cluster may not want to give; without them nothing at all would start."""
    usual = {reconciler.name for reconciler in wiring.reconcilers()}
    assert not usual & set(wiring.on_request())
