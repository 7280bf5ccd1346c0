"""A Machine changes between the gateway's look and the mark: the mark is refused, and the request is decided anew."""

from __future__ import annotations

from typing import Any

import pytest

from api import names
from controllers.kernel.refs import MACHINE, MACHINE_SET, Key, Ref
from tests.builders.objects import machine, owner_reference
from tests.gateways.externalgrpc.caller import Serving, bounds, live, node, replicas, serving
from tests.gateways.race import Race
from tests.runtime.town import Town

GROUP = "MachineSet/default/workers"
MARK = names.DELETE_MACHINE_ANNOTATION


async def populate(town: Town, *machines: str) -> None:
    """A set whose controller has acted on its size, with Machines that have no Node yet. No controller is at work."""
    await town.machine_set("workers", len(machines))
    ref = Ref(MACHINE_SET, Key("default", "workers"))
    created = await town.client.merge_patch(ref, {"metadata": {"annotations": bounds(0, 5)}})
    await town.client.patch_status(ref, {"observedGeneration": created["metadata"]["generation"]})
    for name in machines:
        body = machine(name).build()
        body["metadata"] = {"name": name, "namespace": "default", "labels": {"pool": "workers"}}
        body["metadata"]["ownerReferences"] = [owner_reference(created)]
        body["spec"]["providerID"] = f"simulated:///{name}"
        await town.client.create(MACHINE, body)


async def known(town: Town, served: Serving, count: int) -> None:
    def seen() -> bool:
        facts = served.gateway.fleet.facts(GROUP)
        return facts is not None and facts.applied and len(facts.live) == count

    await town.until(seen)


def mark_of(town: Town, name: str) -> Any:
    (found,) = (each for each in town.objects(MACHINE) if each["metadata"]["name"] == name)
    return (found["metadata"].get("annotations") or {}).get(MARK)


async def test_a_machine_that_becomes_a_node_meanwhile_is_not_given_up(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NodeGroupDecreaseTargetSize takes Machines that are no Nodes, and never one that is."""
    await populate(town, "a")
    async with serving(town) as served:
        await known(town, served, 1)
        joins = {"nodeRef": {"kind": "Node", "name": "node-a"}}
        race = Race(monkeypatch, "externalgrpc", MACHINE, lambda ref: town.client.patch_status(ref, joins))
        code, why = await served.caller.status("NodeGroupDecreaseTargetSize", id=GROUP, delta=-1)
        assert race.lost is not None
        assert code == "FAILED_PRECONDITION", why
        assert "attempt to delete existing nodes" in why
        assert replicas(town, MACHINE_SET) == 1
        assert mark_of(town, "a") is None


@pytest.mark.parametrize("call", ["NodeGroupDecreaseTargetSize", "NodeGroupDeleteNodes"])
async def test_of_a_request_that_is_refused_after_some_marks_none_is_left(
    town: Town, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Else a person who scales down later would lose Machines that nobody chose for that."""
    await populate(town, "a", "b")
    async with serving(town) as served:
        await known(town, served, 2)
        ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": ""}
        joins = {
            "nodeRef": {"kind": "Node", "name": "node"},
            "conditions": [{**ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        }
        race = Race(monkeypatch, "externalgrpc", MACHINE, lambda ref: town.client.patch_status(ref, joins))
        nodes = [node(f"simulated:///{name}", fake="unregistered") for name in ("a", "b")]
        fields = {"delta": -2} if call == "NodeGroupDecreaseTargetSize" else {"nodes": nodes}
        code, why = await served.caller.status(call, id=GROUP, **fields)
        assert race.lost is not None
        assert code == "FAILED_PRECONDITION", why
        await town.until(lambda: mark_of(town, "a") is None and mark_of(town, "b") is None)
        assert replicas(town, MACHINE_SET) == 2


async def test_the_mark_of_a_person_that_comes_meanwhile_is_kept(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    await populate(town, "a", "b")
    async with serving(town) as served:
        await known(town, served, 2)
        marks = {"metadata": {"annotations": {MARK: "yes"}}}
        race = Race(monkeypatch, "externalgrpc", MACHINE, lambda ref: town.client.merge_patch(ref, marks))
        answer = await served.caller.status("NodeGroupDeleteNodes", id=GROUP, nodes=[node("simulated:///a")])
        assert race.lost is not None
        assert answer == ("OK", "")
        assert mark_of(town, "a") == "yes"
        assert replicas(town, MACHINE_SET) == 1


async def test_a_machine_that_only_changes_its_status_goes_all_the_same(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    await populate(town, "a", "b")
    async with serving(town) as served:
        await known(town, served, 2)
        phase = {"phase": "Provisioning"}
        race = Race(monkeypatch, "externalgrpc", MACHINE, lambda ref: town.client.patch_status(ref, phase))
        answer = await served.caller.status("NodeGroupDeleteNodes", id=GROUP, nodes=[node("simulated:///a")])
        assert race.lost is not None
        assert answer == ("OK", "")
        assert mark_of(town, "a") == "nodewright-externalgrpc"
        assert replicas(town, MACHINE_SET) == 1
        assert live(town) == ["a", "b"]


async def test_a_machine_that_is_gone_meanwhile_lowers_nothing(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    await populate(town, "a", "b")
    async with serving(town) as served:
        await known(town, served, 2)
        race = Race(monkeypatch, "externalgrpc", MACHINE, town.client.delete)
        answer = await served.caller.status("NodeGroupDeleteNodes", id=GROUP, nodes=[node("simulated:///a")])
        assert race.lost is not None
        assert answer[0] == "NOT_FOUND"
        assert replicas(town, MACHINE_SET) == 2
