"""A hostile namespace against a Node and a kubelet's certificate that are none of its own, on the embedded plane."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from api import names
from controllers.kernel.refs import CERTIFICATE_SIGNING_REQUEST, MACHINE, NAMESPACE, NODE, POD, Key, Obj, Ref
from nodewright.runtime.settings import wiring
from tests.controllers.certificatesigningrequest.requests import RequestBuilder, client, dns, serving
from tests.runtime.town import FAST, Town

VICTIM = "openstack:///8d2f5d7e-victim"
EVIL = Key("evil", "m-1")


def node_body(name: str = "victim") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {"providerID": VICTIM},
    }


def machine_body(name: str = "m-1", **spec: Any) -> dict[str, Any]:
    wanted = {
        "providerConfig": {"value": dict(FAST)},
        "metadata": {"labels": {"node-role.kubernetes.io/control-plane": "", "node-restriction.kubernetes.io/x": ""}},
        "taints": [{"key": "evil", "effect": "NoExecute"}],
        "nodeDrainForceAfter": "1s",
        **spec,
    }
    meta = {"name": name, "namespace": EVIL.namespace}
    return {"apiVersion": MACHINE.api_version, "kind": "Machine", "metadata": meta, "spec": wanted}


async def prepared(town: Town, *, joined: bool = True) -> None:
    """A Node that was joined by hand, with a pod on it, and the namespace of the tenant."""
    await town.client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "evil"}})
    if not joined:
        return
    await town.client.create(NODE, node_body())
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    await town.client.report_status(Ref(NODE, Key("", "victim")), {"conditions": [ready]})
    container = {"name": "c", "image": "i"}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"nodeName": "victim", "containers": [container]},
    }
    await town.client.create(POD, body)


async def paused(town: Town, value: str | None) -> None:
    await town.client.merge_patch(Ref(MACHINE, EVIL), {"metadata": {"annotations": {names.PAUSED_ANNOTATION: value}}})


async def bound_by_hand(town: Town) -> None:
    """To the foreign Node's host. The schema only lets a providerID be cleared: paused, nobody fills it in between."""
    await paused(town, "")
    await town.until(lambda: said(town, "Paused") == "Paused")
    for provider_id in (None, VICTIM):
        await town.client.merge_patch(Ref(MACHINE, EVIL), {"spec": {"providerID": provider_id}})


def found(town: Town, kind: Any, name: str) -> Obj | None:
    return next((obj for obj in town.objects(kind) if obj["metadata"]["name"] == name), None)


def said(town: Town, type_: str, name: str = EVIL.name) -> str:
    conditions = ((found(town, MACHINE, name) or {}).get("status") or {}).get("conditions") or ()
    return next((str(c["reason"]) for c in conditions if c["type"] == type_), "")


def is_untouched(town: Town) -> bool:
    victim, web = found(town, NODE, "victim"), found(town, POD, "web")
    return (
        victim is not None
        and victim["metadata"]["labels"] == {"kubernetes.io/hostname": "victim"}
        and not victim["metadata"].get("annotations")
        and victim["spec"] == {"providerID": VICTIM}
        and web is not None
        and not web["metadata"].get("deletionTimestamp")
    )


async def test_a_machine_with_the_provider_id_of_a_foreign_node_writes_nothing_to_it_and_can_be_deleted(
    town: Town,
) -> None:
    await prepared(town)
    async with town.controllers():
        await town.client.create(MACHINE, machine_body(providerID=VICTIM))
        await town.until(lambda: said(town, "InfrastructureReady") == "HostMissing")
        assert is_untouched(town)
        await town.client.delete(Ref(MACHINE, EVIL))
        await town.until(lambda: found(town, MACHINE, EVIL.name) is None)
        assert is_untouched(town)


async def test_pause_another_provider_id_and_delete_drain_and_delete_no_foreign_node(town: Town) -> None:
    await prepared(town)
    async with town.controllers():
        await town.client.create(MACHINE, machine_body())
        await town.until(lambda: town.ready() == 1)
        await bound_by_hand(town)
        await town.client.delete(Ref(MACHINE, EVIL))
        await paused(town, None)
        await town.until(lambda: found(town, MACHINE, EVIL.name) is None)
        assert is_untouched(town)
        await town.until(lambda: town.hosts() == 0)
        assert {n["metadata"]["name"] for n in town.objects(NODE)} == {"victim"}, "its own Node has gone with it"


async def test_a_living_machine_that_is_bound_to_a_foreign_node_by_hand_says_so_and_writes_nothing(town: Town) -> None:
    await prepared(town)
    async with town.controllers():
        await town.client.create(MACHINE, machine_body())
        await town.until(lambda: town.ready() == 1)
        await bound_by_hand(town)
        await paused(town, None)
        await town.until(lambda: said(town, "InfrastructureReady") == "NodeConflict")
        assert is_untouched(town)


async def test_labels_that_grant_rights_are_left_off_a_machines_own_node_and_it_says_so(town: Town) -> None:
    await prepared(town)
    async with town.controllers():
        await town.client.create(MACHINE, machine_body())
        await town.until(lambda: said(town, "NodeMetadataAllowed") == "NotAllowed" and town.ready() == 1)
        own = found(town, NODE, "m-1")
        assert own is not None
        assert not {key for key in own["metadata"]["labels"] if key.startswith("node-r")}


@pytest.fixture
def approving(town: Town) -> Town:
    reconciler = wiring.on_request()["certificatesigningrequest"]()
    town.options = replace(
        town.options, reconcilers=wiring.reached_at((*wiring.reconcilers(), reconciler), town.connection.server)
    )
    return town


def decided(town: Town, name: str) -> str:
    csr = found(town, CERTIFICATE_SIGNING_REQUEST, name) or {}
    return next((str(c["type"]) for c in (csr.get("status") or {}).get("conditions") or ()), "")


async def asked(town: Town, csr: RequestBuilder) -> None:
    body = csr.build()
    await town.client.create(CERTIFICATE_SIGNING_REQUEST, {**body, "metadata": {"name": body["metadata"]["name"]}})


def honest(name: str) -> RequestBuilder:
    """A request that is approved once all before it were looked at."""
    return (
        serving("honest")
        .asking(common_name=f"system:node:{name}", alternatives=dns(name))
        .by(f"system:node:{name}", "system:nodes")
    )


async def test_a_stolen_token_gets_no_certificate_of_a_foreign_node_that_runs(approving: Town) -> None:
    town = approving
    await prepared(town)
    async with town.controllers():
        await town.client.create(MACHINE, machine_body("victim", providerID=VICTIM))
        await town.machine_set("ms", 1)
        await town.until(lambda: said(town, "InfrastructureReady", "victim") == "HostMissing" and town.ready() == 1)
        await asked(town, client("stolen").asking(common_name="system:node:victim"))
        (ours,) = [m for m in town.objects(MACHINE) if m["metadata"]["namespace"] == "default"]
        await asked(town, honest(ours["status"]["nodeRef"]["name"]))
        await town.until(lambda: decided(town, "honest") == "Approved")
        assert decided(town, "stolen") == ""
        assert is_untouched(town)


async def test_a_machine_that_is_named_like_the_api_servers_service_gets_no_serving_certificate(
    approving: Town,
) -> None:
    town, name = approving, "kubernetes.default.svc"
    await prepared(town, joined=False)
    async with town.controllers():
        await town.client.create(MACHINE, machine_body(name))
        await town.machine_set("ms", 1)
        await town.until(lambda: town.ready() == 2)
        csr = serving("evil").asking(common_name=f"system:node:{name}", alternatives=dns(name))
        await asked(town, csr.by(f"system:node:{name}", "system:nodes"))
        (ours,) = [m for m in town.objects(MACHINE) if m["metadata"]["namespace"] == "default"]
        await asked(town, honest(ours["status"]["nodeRef"]["name"]))
        await town.until(lambda: decided(town, "honest") == "Approved")
        assert decided(town, "evil") == ""
