"""Our autoscaler on a provider's groups: against our own gateway, from pending pods to Machines and back."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import grpc
import pytest

from api import limits
from controllers.autoscaler.cluster_state import is_unschedulable
from controllers.autoscaler.expanders import Choosing
from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions, ShrinkOptions
from controllers.autoscaler.prices import PriceTable
from controllers.kernel.refs import NODE, POD, Ref, key_of
from nodewright.cli.main import run
from nodewright.gateways.externalgrpc.certificates import CertificateOptions, write_all
from nodewright.gateways.externalgrpc.client.autoscaler import ExternalAutoscaler
from nodewright.gateways.externalgrpc.client.config import CloudConfig
from nodewright.gateways.externalgrpc.client.provider import ExternalProvider, ProviderCallError
from nodewright.gateways.externalgrpc.gateway import GatewayOptions
from nodewright.gateways.externalgrpc.reads import ReadOptions
from nodewright.gateways.externalgrpc.server import SERVICE
from nodewright.gateways.externalgrpc.tls import ServerTls, TlsFiles
from nodewright.gateways.externalgrpc.wire.cloudprovider_pb2 import NodeGroupAutoscalingOptions
from nodewright.runtime.settings.options import utc_now
from tests.gateways.externalgrpc.caller import CAPACITY, GROUP, bounds, group, live, replicas, serving
from tests.runtime.replicas import pod_of, pods_on_nodes, replica_set
from tests.runtime.town import SECONDS, Town

NO_DEFAULTS = NodeGroupAutoscalingOptions()
SOON = AutoscalerOptions(
    GrowthOptions(),
    ShrinkOptions(unneeded_time=timedelta(0), delay_after_add=timedelta(0)),
    scan_interval=timedelta(seconds=0.1),
)


@asynccontextmanager
async def scaling(town: Town, address: str, options: AutoscalerOptions = SOON) -> AsyncIterator[ExternalAutoscaler]:
    async with (
        ExternalProvider(CloudConfig(address)) as provider,
        ExternalAutoscaler(town.client, provider, options, utc_now, reflector=town.options.reflector) as autoscaler,
    ):
        yield autoscaler


@asynccontextmanager
async def running(autoscaler: ExternalAutoscaler) -> AsyncIterator[None]:
    stop = asyncio.Event()
    task = asyncio.create_task(autoscaler.run(stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, SECONDS)


def all_joined(town: Town, count: int) -> Callable[[], bool]:
    return lambda: len(town.objects(NODE)) == count and town.ready() == count


def with_pods_bound(town: Town) -> None:
    """A scheduler that calls pods Unschedulable, and kubelets that run them; no autoscaler of our own."""
    town.options = replace(town.options, bind_pods=True)


def unschedulable(town: Town, count: int) -> Callable[[], bool]:
    def holds() -> bool:
        return sum(is_unschedulable(pod) for pod in town.objects(POD)) == count

    return holds


async def test_pods_that_wait_grow_a_machine_deployment_through_our_own_gateway(town: Town) -> None:
    with_pods_bound(town)
    await group(town, 0, {**bounds(0, 5), **CAPACITY}, cpus=4)
    async with town.controllers(), serving(town) as served, scaling(town, served.address) as autoscaler:
        web = await replica_set(town, "web")
        for index in range(3):
            await pod_of(town, web, f"p-{index}", "3")
        await town.until(unschedulable(town, 3))
        async with running(autoscaler):
            await town.until(lambda: pods_on_nodes(town) == 3)
        assert replicas(town) == 3


async def test_an_autoscaler_that_starts_anew_asks_for_nothing_twice(town: Town) -> None:
    with_pods_bound(town)
    await group(town, 0, {**bounds(0, 5), **CAPACITY}, cpus=4, bootSeconds=3600)
    async with town.controllers(), serving(town) as served:
        await pod_of(town, await replica_set(town, "web"), "p", "3")
        await town.until(unschedulable(town, 1))
        for expected in ({GROUP: 1}, {}):
            async with scaling(town, served.address) as autoscaler:
                assert dict((await autoscaler.once()).increase) == expected
    assert replicas(town) == 1


async def test_nodes_that_nobody_needs_are_emptied_and_given_back(town: Town) -> None:
    """Two pods of one core on two Nodes: one of them moves, its Node goes; once both are gone, so is the other Node."""
    with_pods_bound(town)
    await group(town, 2, {**bounds(0, 5), **CAPACITY}, cpus=4)
    async with town.controllers(), serving(town) as served, scaling(town, served.address) as autoscaler:
        await town.until(all_joined(town, 2))
        web = await replica_set(town, "web")
        for index, node in enumerate(sorted(body["metadata"]["name"] for body in town.objects(NODE))):
            await pod_of(town, web, f"p-{index}", "1", nodeName=node)
        async with running(autoscaler):
            await town.until(lambda: replicas(town) == 1 and len(live(town)) == 1)
            assert pods_on_nodes(town) == 1, "the other was evicted, and nobody makes it anew here"
            for pod in town.objects(POD):
                await town.client.delete(Ref(POD, key_of(pod)))
            await town.until(lambda: replicas(town) == 0 and not live(town))


async def test_a_provider_that_can_not_be_called_changes_nothing(town: Town) -> None:
    await group(town, 0, {**bounds(0, 5), **CAPACITY})
    async with scaling(town, "127.0.0.1:1") as autoscaler:
        with pytest.raises(ProviderCallError, match="Refresh: UNAVAILABLE"):
            await autoscaler.once()
    assert replicas(town) == 0


async def test_a_provider_with_certificates_is_called_with_ours(town: Town, tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    write_all(folder, CertificateOptions(("localhost", "127.0.0.1")))
    options = GatewayOptions()
    files = TlsFiles(folder / "server.crt", folder / "server.key", folder / "ca.crt")
    secured = replace(options, server=replace(options.server, tls=ServerTls(files)))
    await group(town, 0, {**bounds(0, 5), **CAPACITY})
    async with serving(town, secured) as served:
        address = f"localhost:{served.address.rpartition(':')[2]}"
        ours = CloudConfig(address, *(str(folder / name) for name in ("client.crt", "client.key", "ca.crt")))
        async with ExternalProvider(ours) as provider:
            assert [each.id for each in await provider.look((), defaults=NO_DEFAULTS)] == [GROUP]
        async with ExternalProvider(CloudConfig(address)) as provider:
            with pytest.raises(ProviderCallError, match="Refresh"):
                await provider.look((), defaults=NO_DEFAULTS)


async def test_the_provider_s_prices_choose_among_its_groups(town: Town) -> None:
    with_pods_bound(town)
    for name in ("workers", "spot"):
        await group(town, 0, {**bounds(0, 5), **CAPACITY}, name, cpus=4, bootSeconds=3600)
    spot = GROUP.replace("workers", "spot")
    for cheap in (GROUP, spot):
        table = PriceTable({GROUP: 2.0, spot: 2.0, cheap: 1.0})
        priced = replace(GatewayOptions(), reads=ReadOptions(prices=table))
        growth = replace(SOON.growth, choosing=Choosing(("price",)))
        async with town.controllers(), serving(town, priced) as served:
            await pod_of(town, await replica_set(town, f"for-{cheap[-4:]}"), f"pod-{cheap[-4:]}", "3")
            async with scaling(town, served.address, replace(SOON, growth=growth)) as autoscaler:
                waiting = 1 + (cheap == spot)
                await town.until(unschedulable(town, waiting))
                assert dict((await autoscaler.once()).increase) == {cheap: 1}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"\xff\xff\xff", "the answer can't be decoded"),
        (b"\x00" * (limits.MAX_PROVIDER_MESSAGE + 1), "RESOURCE_EXHAUSTED"),
    ],
    ids=["no protobuf", "too large"],
)
async def test_an_answer_that_can_not_be_read_is_a_call_that_failed(answer: bytes, why: str) -> None:
    async def refresh(_request: bytes, _context: object) -> bytes:
        return answer

    server = grpc.aio.server(options=[("grpc.max_send_message_length", -1)])
    handler = grpc.unary_unary_rpc_method_handler(refresh)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE.full_name, {"Refresh": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with ExternalProvider(CloudConfig(f"127.0.0.1:{port}")) as provider:
            with pytest.raises(ProviderCallError, match=f"Refresh: {why}"):
                await provider.look((), defaults=NO_DEFAULTS)
    finally:
        await server.stop(None)


async def test_a_call_that_is_not_answered_has_its_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = CloudConfig(f"127.0.0.1:{silent.getsockname()[1]}", timeout=0.05)
        async with ExternalProvider(config) as provider:
            with pytest.raises(ProviderCallError, match="Refresh: DEADLINE_EXCEEDED"):
                await provider.look((), defaults=NO_DEFAULTS)


async def test_the_program_scales_while_it_holds_the_lease(town: Town, tmp_path: Path) -> None:
    """Another one stands by; without that it is told so at once."""
    with_pods_bound(town)
    await group(town, 0, {**bounds(0, 5), **CAPACITY}, cpus=4)
    async with town.controllers(), serving(town) as served:
        config = tmp_path / "cloud-config.yaml"
        config.write_text(f"address: {served.address}\n")
        flags = ["autoscaler", "run", "--cloud-provider=externalgrpc", f"--cloud-config={config}"]
        flags += [f"--kubeconfig={town.plane.kubeconfig_path}", "--scan-interval=100ms"]
        program = await started(*flags)
        try:
            assert program.stdout is not None
            assert b"ready: scaling the node groups of" in await program.stdout.readline()
            await pod_of(town, await replica_set(town, "web"), "p", "3")
            await town.until(lambda: pods_on_nodes(town) == 1)
            second = await started(*flags, "--no-leader-elect")
            _, told = await asyncio.wait_for(second.communicate(), SECONDS)
            assert (second.returncode, b"Stop the other one" in told) == (1, True), told
            program.terminate()
            assert await asyncio.wait_for(program.wait(), SECONDS) == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                program.kill()


async def started(*flags: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, "-m", "nodewright.cli", *flags)
    return await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--cloud-provider=aws"], "--cloud-provider: 'aws' is not externalgrpc"),
        (["--cloud-provider=externalgrpc"], "--cloud-config is needed"),
        (["--cloud-provider=externalgrpc", "--nodes=1:2:a/b"], "--nodes is for MachineDeployments"),
        (["--cloud-provider=externalgrpc", "--cloud-config=/nowhere"], "--cloud-config: /nowhere"),
    ],
)
def test_wrong_usage_is_told(flags: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["autoscaler", "run", *flags]) == 2
    assert expected in capsys.readouterr().err
