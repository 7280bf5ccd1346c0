"""Calls over a real connection, with the controllers at work behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from api import names
from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, NAMESPACE, NODE, Key, Ref
from controllers.scaling.node_group import Filter
from nodewright.apiserver.app.faults import Match
from nodewright.gateways.externalgrpc import translate
from nodewright.gateways.externalgrpc.fleet import AmbiguousError
from nodewright.gateways.externalgrpc.gateway import GatewayOptions
from nodewright.gateways.externalgrpc.server import SERVICE
from nodewright.gateways.externalgrpc.wire import cloudprovider_pb2 as wire
from nodewright.gateways.externalgrpc.wire import core_pb2 as core
from tests.gateways.externalgrpc.caller import (
    CAPACITY,
    GROUP,
    Caller,
    Serving,
    bounds,
    deployment,
    group,
    live,
    node,
    provider_id,
    replicas,
    serving,
)
from tests.runtime.town import FAST, Town

RUNNING, CREATING, DELETING = 1, 2, 3


async def test_a_group_grows_from_zero_and_shrinks_to_it(town: Town) -> None:
    async with town.controllers(), serving(town) as served:
        caller = served.caller
        await group(town, 0, {**bounds(0, 5), **CAPACITY})
        await town.until(lambda: GROUP in served.gateway.fleet.groups())
        (found,) = (await caller("NodeGroups")).nodeGroups
        assert (found.id, found.minSize, found.maxSize) == (GROUP, 0, 5)
        assert (await caller("NodeGroupTemplateNodeInfo", id=GROUP)).nodeBytes
        await caller("NodeGroupIncreaseSize", id=GROUP, delta=3)
        assert await caller.size() == 3
        await town.until(lambda: town.ready() == 3)
        ids = {each["spec"]["providerID"] for each in town.objects(NODE)}
        await town.until(lambda: len(served.gateway.fleet.facts(GROUP).live) == 3)  # type: ignore[union-attr]
        instances = await caller.instances()
        assert set(instances) == ids
        for each in ids:
            assert (await caller("NodeGroupForNode", node=node(each, "any"))).nodeGroup.id == GROUP
        for each in ids:
            await caller("NodeGroupDeleteNodes", id=GROUP, nodes=[node(each)])
        assert await caller.size() == 0
        await town.until(lambda: not town.objects(MACHINE) and not town.hosts())


async def test_a_machine_of_another_namespace_with_the_same_provider_id_hides_no_group(town: Town) -> None:
    """Its providerID was written by a person: the Machine controller finds no host of it."""
    async with town.controllers(), serving(town) as served:
        await group(town, 1, bounds(0, 5))
        await town.until(lambda: town.ready() == 1)
        (name,) = live(town)
        claimed = provider_id(town, name)
        await town.client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "evil"}})
        meta = {"name": "rival", "namespace": "evil"}
        spec = {"providerID": claimed, "providerConfig": {"value": dict(FAST)}}
        body = {"apiVersion": MACHINE.api_version, "kind": "Machine", "metadata": meta, "spec": spec}
        await town.client.create(MACHINE, body)

        def is_refuted() -> bool:
            found = served.gateway.fleet.machine(claimed)
            return found is not None and found.key.name == name

        await town.until(lambda: any(m["status"].get("errorReason") for m in town.objects(MACHINE) if m.get("status")))
        await town.until(lambda: _answers(is_refuted))
        assert (await served.caller("NodeGroupForNode", node=node(claimed, "any"))).nodeGroup.id == GROUP


async def test_a_paused_machine_of_another_namespace_with_the_same_provider_id_and_owner_hides_no_group(
    town: Town,
) -> None:
    """Nobody looks for its host, so nobody says that it has none. It counts for no set of another namespace."""
    async with town.controllers(), serving(town) as served:
        await group(town, 1, bounds(0, 5))
        await town.until(lambda: town.ready() == 1)
        (name,) = live(town)
        claimed = provider_id(town, name)
        (own,) = town.objects(MACHINE)
        await town.client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "evil"}})
        owners = own["metadata"]["ownerReferences"]
        paused = {names.PAUSED_ANNOTATIONS[0]: "true"}
        # The finalizer keeps it from the garbage collector, as the Machine controller's does.
        meta = {"name": "rival", "namespace": "evil", "annotations": paused, "ownerReferences": owners}
        spec = {"providerID": claimed, "providerConfig": {"value": dict(FAST)}}
        body = {"apiVersion": MACHINE.api_version, "kind": "Machine", "metadata": meta, "spec": spec}
        await town.client.create(MACHINE, {**body, "metadata": {**meta, "finalizers": ["example.com/stays"]}})
        await town.until(lambda: served.gateway.cache.stores[MACHINE].get(Key("evil", "rival")) is not None)
        assert (await served.caller("NodeGroupForNode", node=node(claimed, "any"))).nodeGroup.id == GROUP
        assert len(await served.caller.instances()) == 1
        found = served.gateway.fleet.facts(GROUP)
        assert found is not None
        assert [machine.key.namespace for machine in found.live] == ["default"]


def _answers(ask: Callable[[], bool]) -> bool:
    try:
        return ask()
    except AmbiguousError:
        return False


async def test_exactly_the_named_machines_go_however_often_and_however_many_ask_at_once(town: Town) -> None:
    async with town.controllers(), serving(town) as served:
        await group(town, 6, bounds(0, 6))
        await town.until(lambda: town.ready() == 6)
        await town.until(lambda: len(served.gateway.fleet.facts(GROUP).live) == 6)  # type: ignore[union-attr]
        going, staying = live(town)[:3], live(town)[3:]
        requests = [node(provider_id(town, name)) for name in going] * 3
        await asyncio.gather(*(served.caller("NodeGroupDeleteNodes", id=GROUP, nodes=[each]) for each in requests))
        assert await served.caller.size() == 3
        await town.until(lambda: len(town.objects(MACHINE)) == 3)
        assert live(town) == staying
        assert replicas(town) == 3


async def test_a_deletion_whose_answer_was_lost_is_not_done_twice(town: Town) -> None:
    async with town.controllers(), serving(town) as served:
        await group(town, 3, bounds(0, 3))
        await town.until(lambda: town.ready() == 3)
        await town.until(lambda: served.gateway.fleet.facts(GROUP).applied)  # type: ignore[union-attr]
        victim = live(town)[1]
        town.plane.faults.lose_answer(Match(verb="patch", resource="machinedeployments.cluster.k8s.io"), times=1)
        await served.caller("NodeGroupDeleteNodes", id=GROUP, nodes=[node(provider_id(town, victim))])
        assert town.plane.faults.hits == 1
        assert await served.caller.size() == replicas(town) == 2
        await town.until(lambda: len(town.objects(MACHINE)) == 2)
        assert victim not in live(town)


@pytest.mark.slow
async def test_a_gateway_that_died_between_mark_and_size_leaves_a_machine_as_it_was(town: Town) -> None:
    """The mark alone removes nothing, and the next deletion of another Machine takes it back."""
    async with town.controllers():
        await group(town, 3, bounds(0, 3))
        await town.until(lambda: town.ready() == 3)
        marked, victim, _ = live(town)
        mark = {"metadata": {"annotations": {names.DELETE_MACHINE_ANNOTATION: "nodewright-externalgrpc"}}}
        await town.client.merge_patch(Ref(MACHINE, Key("default", marked)), mark)
        async with serving(town) as served:
            await served.caller("NodeGroupDeleteNodes", id=GROUP, nodes=[node(provider_id(town, victim))])
            await town.until(lambda: len(town.objects(MACHINE)) == 2)
            assert marked in live(town)


@pytest.mark.slow
async def test_a_second_gateway_beside_it_lowers_nothing_twice(town: Town) -> None:
    async with town.controllers(), serving(town) as one, serving(town) as other:
        await group(town, 4, bounds(0, 8))
        await town.until(lambda: town.ready() == 4)
        for each in (one, other):
            await town.until(lambda: len(each.gateway.fleet.facts(GROUP).live) == 4)  # type: ignore[union-attr]  # noqa: B023
        victims = [node(provider_id(town, name)) for name in live(town)[:2]]
        calls = [each.caller("NodeGroupDeleteNodes", id=GROUP, nodes=victims) for each in (one, other)]
        await asyncio.gather(*calls)
        await town.until(lambda: len(town.objects(MACHINE)) == 2)
        assert replicas(town) == 2
        calls = [each.caller("NodeGroupIncreaseSize", id=GROUP, delta=1) for each in (one, other)]
        await asyncio.gather(*calls)
        assert replicas(town) == 4


async def test_a_quota_that_is_used_up_is_told_as_out_of_resources_and_given_up_once(town: Town) -> None:
    async with town.controllers(), serving(town) as served:
        caller = served.caller
        await group(town, 1, bounds(0, 4), cloud={"name": "full", "quota": {"hosts": 1}})
        await town.until(lambda: town.ready() == 1)
        await caller("NodeGroupIncreaseSize", id=GROUP, delta=1)
        await town.until(lambda: any(each.errorInfo.errorCode for each in _statuses(served).values()))
        ((short, status),) = [(id_, each) for id_, each in _statuses(served).items() if each.errorInfo.errorCode]
        assert short.startswith("pending://default/")
        assert (status.instanceState, status.errorInfo.instanceErrorClass) == (CREATING, 1)
        assert status.errorInfo.errorCode == "QuotaExceeded"
        assert (await caller("NodeGroupForNode", node=node(short, fake="create-error"))).nodeGroup.id == GROUP
        for _ in range(2):
            await caller("NodeGroupDeleteNodes", id=GROUP, nodes=[node(short, fake="create-error")])
        assert await caller.size() == 1
        await town.until(lambda: len(town.objects(MACHINE)) == 1)
        assert town.ready() == 1
        assert (await caller.status("NodeGroupDeleteNodes", id=GROUP, nodes=[node(short)]))[0] == "NOT_FOUND"


@pytest.mark.slow
async def test_a_decrease_gives_up_what_is_no_node_and_a_deletion_of_it_afterwards_changes_nothing(town: Town) -> None:
    async with town.controllers(), serving(town) as served:
        caller = served.caller
        await group(town, 0, bounds(0, 4), bootSeconds=600)
        await town.until(lambda: GROUP in served.gateway.fleet.groups())
        await caller("NodeGroupIncreaseSize", id=GROUP, delta=2)
        await town.until(lambda: len(served.gateway.fleet.facts(GROUP).live) == 2)  # type: ignore[union-attr]
        pending = {id_ for id_, status in _statuses(served).items() if status.instanceState == CREATING}
        assert len(pending) == 2
        await caller("NodeGroupDecreaseTargetSize", id=GROUP, delta=-1)
        await town.until(lambda: len(live(town)) == 1)
        given_up = [id_ for id_, status in (await caller.instances()).items() if status.instanceState == DELETING]
        for each in given_up:
            await caller.status("NodeGroupDeleteNodes", id=GROUP, nodes=[node(each, fake="unregistered")])
        assert await caller.size() == replicas(town) == 1


async def test_a_group_without_capacity_has_no_template_and_a_faulty_one_says_what_is_wrong(town: Town) -> None:
    async with serving(town) as served:
        caller = served.caller
        await group(town, 0, bounds(0, 5), "bare")
        await group(town, 0, {**bounds(0, 5), **CAPACITY, names.CAPACITY_TAINTS_ANNOTATION: "oops"}, "odd")
        await town.until(lambda: len(served.gateway.fleet.groups()) == 2)
        code, _ = await caller.status("NodeGroupTemplateNodeInfo", id="MachineDeployment/default/bare")
        assert code == "UNIMPLEMENTED"
        code, why = await caller.status("NodeGroupTemplateNodeInfo", id="MachineDeployment/default/odd")
        assert code == "FAILED_PRECONDITION"
        assert names.CAPACITY_TAINTS_ANNOTATION in why


async def test_a_template_is_what_the_provider_says_less_what_kubelets_keep(town: Town) -> None:
    reserved = {names.KUBE_RESERVED_ANNOTATION: "cpu=500m,memory=1Gi", names.CAPACITY_MAX_PODS_ANNOTATION: "42"}
    await group(town, 0, {**bounds(0, 5), **reserved}, cpus=4, memory="8Gi", zone="north")
    options = GatewayOptions(providers=town.options.registry)
    async with serving(town, options) as served:
        answer = await served.caller("NodeGroupTemplateNodeInfo", id=GROUP)
        found = core.Node.FromString(answer.nodeBytes)
        capacity, allocatable = (
            {name: amounts[name].string for name in ("cpu", "memory", "pods")}
            for amounts in (found.status.capacity, found.status.allocatable)
        )
        assert capacity == {"cpu": "4000m", "memory": str(8 * 1024**3), "pods": "42"}
        assert allocatable == {"cpu": "3500m", "memory": str(7 * 1024**3), "pods": "42"}
        assert found.metadata.labels["topology.kubernetes.io/zone"] == "north"
        await group(town, 0, bounds(0, 5), "later", cpus=2, memory="2Gi")
        later = "MachineDeployment/default/later"
        await town.until(lambda: later in served.gateway.fleet.groups())
        code, why = await served.caller.status("NodeGroupTemplateNodeInfo", id=later)
        assert (code, why.partition(";")[0]) in {("UNAVAILABLE", "its provider has yet to say"), ("OK", "")}
        while (await served.caller.status("NodeGroupTemplateNodeInfo", id=later))[0] == "UNAVAILABLE":
            pass  # each call gives the provider a turn; the autoscaler asks again in its next loop
        assert (await served.caller("NodeGroupTemplateNodeInfo", id=later)).nodeBytes


async def test_faulty_bounds_cost_one_group_and_a_pause_hides_one(town: Town) -> None:
    async with serving(town) as served:
        await group(town, 0, bounds(0, 5), "good")
        await group(town, 0, bounds("few", 5), "bad")
        await group(town, 0, {**bounds(0, 5), names.PAUSED_ANNOTATION: "yes"}, "paused")
        await group(town, 0, {}, "unbounded")
        await town.until(lambda: len(town.objects(MACHINE_DEPLOYMENT)) == 4)
        await town.until(lambda: len(served.gateway.fleet.groups()) == 1)
        assert list(served.gateway.fleet.groups()) == ["MachineDeployment/default/good"]


async def test_a_scope_leaves_other_groups_out(town: Town) -> None:
    async with serving(town, GatewayOptions(only=Filter(cluster="east"))) as served:
        await group(town, 0, bounds(0, 5), "here")
        await group(town, 0, bounds(0, 5), "there")
        label = {"metadata": {"labels": {names.CLUSTER_NAME_LABEL: "east"}}}
        await town.client.merge_patch(deployment("here"), label)
        await town.until(lambda: list(served.gateway.fleet.groups()) == ["MachineDeployment/default/here"])
        assert (await served.caller.status("NodeGroupTargetSize", id="MachineDeployment/default/there"))[
            0
        ] == "NOT_FOUND"


@pytest.mark.slow
async def test_the_least_size_of_a_group_that_rolls_out_is_its_size(town: Town) -> None:
    """So that the autoscaler drains no Node for a removal that would be refused."""
    async with town.controllers(), serving(town) as served:
        await group(town, 2, bounds(0, 5), bootSeconds=0.05)
        await town.until(lambda: town.ready() == 2)
        await town.until(lambda: served.gateway.fleet.facts(GROUP).applied)  # type: ignore[union-attr]
        await town.client.merge_patch(
            deployment(), {"spec": {"template": {"spec": {"versions": {"kubelet": "1.35.0"}}}}}
        )
        await town.until(lambda: served.gateway.fleet.facts(GROUP).rolling)  # type: ignore[union-attr]
        (found,) = (await served.caller("NodeGroups")).nodeGroups
        assert found.minSize == 2


@pytest.mark.slow
async def test_two_machines_of_one_provider_id_are_nobodys_to_delete(town: Town) -> None:
    async with town.controllers(), serving(town) as served:
        await group(town, 2, bounds(0, 5))
        await town.until(lambda: town.ready() == 2)
        one, other = live(town)
        claimed = provider_id(town, one)
    async with serving(town) as served:
        for value in (None, claimed):
            await town.client.merge_patch(Ref(MACHINE, Key("default", other)), {"spec": {"providerID": value}})
        await town.until(lambda: len(served.gateway.cache.stores[MACHINE].indexed("providerID", claimed)) == 2)
        for call in ("NodeGroupForNode", "NodeGroupDeleteNodes"):
            fields = {"node": node(claimed)} if call == "NodeGroupForNode" else {"id": GROUP, "nodes": [node(claimed)]}
            assert (await served.caller.status(call, **fields))[0] == "FAILED_PRECONDITION"
        assert replicas(town) == 2


async def test_without_controllers_a_change_that_must_wait_for_them_says_so(town: Town) -> None:
    async with serving(town) as served:
        await group(town, 2, bounds(0, 5))
        await town.until(lambda: GROUP in served.gateway.fleet.groups())
        code, why = await served.caller.status("NodeGroupDecreaseTargetSize", id=GROUP, delta=-1)
        assert (code, why) == ("UNAVAILABLE", f"{GROUP} has yet to make 2 Machines")
        assert replicas(town) == 2


async def test_a_port_that_is_taken_is_an_error(town: Town, served: Serving) -> None:
    options = GatewayOptions()
    options = replace(options, server=replace(options.server, port=int(served.address.rpartition(":")[2])))
    with pytest.raises(OSError, match="can't listen"):
        async with serving(town, options):
            pass


async def test_health_and_reflection_are_served_beside_it(town: Town) -> None:
    options = GatewayOptions()
    options = replace(options, server=replace(options.server, reflection=True))
    async with serving(town, options) as served, grpc.aio.insecure_channel(served.address) as channel:
        answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=""))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        asked = reflection_pb2.ServerReflectionRequest(list_services="")
        stream = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(iter([asked]))
        told = await stream.read()
        assert SERVICE.full_name in [service.name for service in told.list_services_response.service]


async def test_a_request_that_is_too_large_or_no_message_is_refused_and_the_server_lives(caller: Caller) -> None:
    big = wire.NodeGroupDeleteNodesRequest(id=GROUP, nodes=[node("x" * 5_000_000)]).SerializeToString()
    for content, code in ((big, "RESOURCE_EXHAUSTED"), (b"\xff\xff\xff", "INVALID_ARGUMENT")):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await caller.send("NodeGroupDeleteNodes", content)
        assert refused.value.code().name == code
    await caller("Refresh")


def _statuses(served: Serving) -> dict[str, wire.InstanceStatus]:
    facts = served.gateway.fleet.facts(GROUP)
    assert facts is not None
    return {each.id: each.status for each in translate.instances(facts.machines, facts.leaving).instances}
