"""Our autoscaler on a provider in Go that knows of us the .proto file alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from grpc_tools import protoc

from controllers.autoscaler.cluster_state import is_unschedulable
from controllers.autoscaler.expanders import Choosing
from controllers.kernel.refs import NODE, POD, Ref, key_of
from hack import golang
from hack.binaries import BinaryMissing
from nodewright.gateways.externalgrpc import wire
from nodewright.gateways.externalgrpc.client.autoscaler import ExternalAutoscaler
from nodewright.gateways.externalgrpc.client.config import CloudConfig
from nodewright.gateways.externalgrpc.client.provider import ExternalProvider, ProviderCallError
from nodewright.gateways.externalgrpc.wire.cloudprovider_pb2 import NodeGroupAutoscalingOptions
from tests.gateways.externalgrpc.test_client import SOON, running, scaling, with_pods_bound
from tests.runtime.replicas import pod_of, replica_set
from tests.runtime.town import SECONDS, Town

GROUP = "pool:a/1"
PROTO = Path(wire.__file__).parent / "cloudprovider.proto"
SOURCES = Path(__file__).parent / "goprovider"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("goprovider") / "goprovider"
    try:
        golang.build(SOURCES, target)
    except BinaryMissing as error:
        pytest.skip(str(error))
    return target


@pytest.fixture
async def address(program: Path, tmp_path: Path) -> AsyncIterator[str]:
    descriptors = tmp_path / "cloudprovider.pb"
    assert not protoc.main(
        [
            "protoc",
            f"-I{PROTO.parent}",
            f"-I{Path(protoc.__file__).parent / '_proto'}",
            "--include_imports",
            f"--descriptor_set_out={descriptors}",
            str(PROTO),
        ]
    )
    process = await asyncio.create_subprocess_exec(program, descriptors, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield (await asyncio.wait_for(process.stdout.readline(), SECONDS)).decode().strip()
    finally:
        process.kill()
        await process.wait()


async def joined(town: Town, provider_id: str) -> None:
    """A kubelet of that instance has joined."""
    name = provider_id.rpartition("/")[2]
    body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"pool": "a", "kubernetes.io/hostname": name}},
        "spec": {"providerID": provider_id},
    }
    await town.client.create(NODE, body)
    status = {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
    }
    ref = Ref(NODE, key_of(body))
    await town.client.merge_patch(ref, {"status": status}, subresource="status")


async def pending(town: Town, count: int, **spec: object) -> None:
    web = await replica_set(town, "web")
    for index in range(count):
        await pod_of(town, web, f"p-{index}", "3", **spec)
    await town.until(lambda: sum(map(is_unschedulable, town.objects(POD))) == count)


async def instances(provider: ExternalProvider) -> list[str]:
    (group,) = await provider.look((), defaults=NodeGroupAutoscalingOptions())
    return [each.id for each in group.instances]


async def test_it_grows_and_shrinks_by_the_instances_that_the_pods_need(town: Town, address: str) -> None:
    with_pods_bound(town)
    async with town.controllers(), scaling(town, address) as autoscaler:
        provider = autoscaler._provider
        await pending(town, 2, nodeSelector={"pool": "a"})
        assert dict((await autoscaler.once()).increase) == {GROUP: 2}
        assert not (await autoscaler.once()).increase, "instances without Nodes are on their way"
        made = await instances(provider)
        assert made == ["goprovider://zone-1/n-1", "goprovider://zone-1/n-2"]
        for each in made:
            await joined(town, each)
        await town.until(lambda: all(pod["spec"].get("nodeName") for pod in town.objects(POD)))
        for pod in town.objects(POD):
            await town.client.delete(Ref(POD, key_of(pod)))
        await town.until(lambda: not town.objects(POD))
        async with running(autoscaler):
            await _all_given_back(address)


async def _all_given_back(address: str) -> None:
    async with ExternalProvider(CloudConfig(address)) as provider:
        async with asyncio.timeout(SECONDS):
            while await instances(provider):
                pass


async def test_what_the_group_can_not_hold_is_not_asked_for(town: Town, address: str) -> None:
    with_pods_bound(town)
    async with town.controllers(), scaling(town, address) as autoscaler:
        await pending(town, 7)
        assert dict((await autoscaler.once()).increase) == {GROUP: 5}
        assert not (await autoscaler.once()).increase


async def test_a_node_is_emptied_before_its_instance_is_given_back(town: Town, address: str) -> None:
    """Of two Nodes with a pod each, both of which fit on one."""
    with_pods_bound(town)
    async with town.controllers(), scaling(town, address) as autoscaler:
        await autoscaler._provider.increase(GROUP, 2)
        for each in await instances(autoscaler._provider):
            await joined(town, each)
        web = await replica_set(town, "web")
        for name in ("n-1", "n-2"):
            await pod_of(town, web, f"on-{name}", "1", nodeName=name)
        await _drained(autoscaler, town)
        assert len(await instances(autoscaler._provider)) == 1


async def _drained(autoscaler: ExternalAutoscaler, town: Town) -> None:
    """Looks until an instance is given back; no pod may be on its Node then."""
    async with asyncio.timeout(SECONDS):
        while True:
            calls = await autoscaler.once()
            if calls.delete:
                ((_, name),) = calls.delete[GROUP]
                assert name not in {pod["spec"].get("nodeName") for pod in town.objects(POD)}
                return


async def test_a_group_whose_provider_refuses_rests(town: Town, address: str) -> None:
    with_pods_bound(town)
    async with town.controllers(), scaling(town, address) as autoscaler:
        with pytest.raises(ProviderCallError, match="RESOURCE_EXHAUSTED: the group has its maximum"):
            await autoscaler._provider.increase(GROUP, 6)
        await autoscaler._resize(replace(await autoscaler.once(), increase={GROUP: 6}), autoscaler._watching.now())
        await pending(town, 1)
        assert not (await autoscaler.once()).increase


async def test_optional_calls_that_it_does_not_have_are_done_without(town: Town, address: str) -> None:
    """Pricing and the options of groups are UNIMPLEMENTED here; the price expander then leaves the choice open."""
    with_pods_bound(town)
    growth = replace(SOON.growth, choosing=Choosing(("price", "least-waste")))
    async with town.controllers(), scaling(town, address, replace(SOON, growth=growth)) as autoscaler:
        await pending(town, 1)
        assert dict((await autoscaler.once()).increase) == {GROUP: 1}
