"""Our autoscaler on a provider's groups: look, decide as for our own groups, call the provider, empty Nodes that go.

What has been asked for is the provider's ``targetSize``, and a taint on the Node marks what is being drained: a
process that dies anywhere asks for nothing twice. Only times are forgotten (since when a Node is unneeded, until when
a group rests): they begin anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import structlog

from api import names
from controllers.autoscaler.backoff import failed
from controllers.autoscaler.cluster_state import ClusterState, NodeHealth
from controllers.autoscaler.decision import Decision
from controllers.autoscaler.external import (
    Calls,
    ExternalGroup,
    Looked,
    calls_of,
    cluster_of,
    holds_up,
    is_leaving,
    remembered,
)
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.observe import holder_of, workload_of
from controllers.autoscaler.options import AutoscalerOptions
from controllers.autoscaler.plan import decide
from controllers.autoscaler.prices import PriceTable
from controllers.kernel.refs import (
    CSI_NODE,
    DAEMON_SET,
    LEASE,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_DISRUPTION_BUDGET,
    STORAGE_CLASS,
    Key,
    Obj,
    is_deleting,
    ref_of,
    resource_version_of,
    spec_of,
)
from nodewright.gateways.cloudpool.watching import Watching
from nodewright.gateways.externalgrpc.client import reading
from nodewright.gateways.externalgrpc.client.provider import ExternalProvider, ProviderCallError, wire_node
from nodewright.gateways.externalgrpc.wire import cloudprovider_pb2 as wire
from nodewright.runtime.cache.reflector import ReflectorOptions
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError, KubeError

_log = structlog.get_logger("nodewright.autoscaler")
KINDS = (
    NODE,
    POD,
    DAEMON_SET,
    NAMESPACE,
    CSI_NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD_DISRUPTION_BUDGET,
    STORAGE_CLASS,
)
READ_WITHIN = 30.0
"""Seconds in which the API server has to answer, else nothing is decided in this look."""
DRAINED_WITHIN = timedelta(minutes=15)
"""A Node whose pods have not gone by then stays: the taint is taken back."""


class ExternalAutoscaler:
    """An async context manager. ``run`` until stopped; ``once`` is a single loop."""

    def __init__(
        self,
        client: KubeClient,
        provider: ExternalProvider,
        options: AutoscalerOptions,
        now: Callable[[], datetime],
        *,
        reflector: ReflectorOptions | None = None,
    ) -> None:
        self._client = client
        self._provider = provider
        self._options = options
        self._watching = Watching(client, KINDS, now, reflector)
        self._memory = Memory()
        self._seen: Mapping[str, datetime] = {}
        self._short: Mapping[str, datetime] = {}
        self._logged: dict[str, str] = {}

    async def __aenter__(self) -> ExternalAutoscaler:
        await self._watching.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._watching.__aexit__(None, None, None)

    async def run(self, stop: asyncio.Event) -> None:
        """A loop that fails is logged, and the next one begins anew."""
        while not stop.is_set():
            try:
                await self.once()
            except (ProviderCallError, KubeError) as error:
                _log.warning("nothing is decided in this look", error=str(error))
            try:
                await asyncio.wait_for(stop.wait(), self._options.scan_interval.total_seconds())
            except TimeoutError:
                continue

    async def once(self) -> Calls:
        """Raises ProviderCallError and KubeError; then nothing was changed, or what was changed is seen next time."""
        await self._watching.current(READ_WITHIN)
        other = await self._other_autoscaler()
        if other:
            _log.warning("the Cluster Autoscaler is at work: nothing is decided", holder=other)
            return Calls()
        groups = await self._provider.look(self._watching.objects(NODE), defaults=_defaults(self._options))
        options = await self._priced(groups)
        view = self._watching.view()
        self._seen, self._short = remembered(groups, view.now, seen=self._seen, short=self._short)
        looked = Looked(
            now=view.now,
            groups=groups,
            workload=workload_of(view),
            options=options,
            memory=self._memory,
            health=NodeHealth(followed_since=view.current_since(NODE) or view.now),
            seen=self._seen,
            short_since=self._short,
        )
        cluster = cluster_of(looked)
        decision = decide(cluster)
        self._memory = decision.memory
        self._tell(_problems(cluster, decision))
        calls = calls_of(looked, decision)
        await self._resize(calls, view.now)
        await self._empty(calls, looked)
        return calls

    def _tell(self, problems: dict[str, str]) -> None:
        """Each once, until it is another one."""
        for name, why in problems.items():
            if self._logged.get(name) != why:
                _log.warning(
                    "a node group is not scaled as it might be" if name else "nothing is scaled", group=name, why=why
                )
        self._logged = problems

    async def _priced(self, groups: list[ExternalGroup]) -> AutoscalerOptions:
        """The options, with what the provider says of prices if an expander asks for them."""
        growth = self._options.growth
        if "price" not in growth.choosing.names:
            return self._options
        asked = [(group.id, group.template) for group in groups if group.template is not None]
        prices = await asyncio.gather(*(self._provider.price(name, shape) for name, shape in asked))
        table = PriceTable({name: price for (name, _), price in zip(asked, prices, strict=True) if price is not None})
        return replace(self._options, growth=replace(growth, choosing=replace(growth.choosing, prices=table)))

    async def _other_autoscaler(self) -> str:
        key = Key(self._options.namespace, names.AUTOSCALER_LEASE)
        try:
            return holder_of(await self._client.get(LEASE, key), self._watching.now())
        except ApiError as error:
            if error.not_found:
                return ""
            raise

    async def _resize(self, calls: Calls, now: datetime) -> None:
        """A group whose provider refuses rests; the others go on."""
        for group, delta in calls.increase.items():
            _log.info("a node group grows", group=group, by=delta)
            try:
                await self._provider.increase(group, delta)
            except ProviderCallError as error:
                _log.warning("a node group can't grow", group=group, error=str(error))
                self._rest(group, str(error), now)
        for group, fewer in calls.decrease.items():
            _log.info("a node group gets instances no longer that were never made", group=group, by=fewer)
            try:
                await self._provider.decrease(group, fewer)
            except ProviderCallError as error:
                _log.warning("a node group can't be made smaller", group=group, error=str(error))
            self._rest(group, "its provider did not begin to make all of its instances", now)
        for group, instances in calls.delete.items():
            await self._delete(group, instances, calls.broken)

    async def _delete(self, group: str, instances: tuple[tuple[str, str], ...], broken: frozenset[str]) -> None:
        """One in each call, as the Cluster Autoscaler does: a provider then knows which one it refuses."""
        nodes = {node["metadata"]["name"]: node for node in self._watching.objects(NODE)}
        for instance, name in instances:
            node = nodes.get(name)
            reported = (
                wire_node(node)
                if node is not None
                else reading.fake_node(instance, "create-error" if instance in broken else "unregistered")
            )
            _log.info("an instance is given back", group=group, instance=instance, node=name)
            try:
                await self._provider.delete(group, reported)
            except ProviderCallError as error:
                _log.warning("an instance can't be given back", group=group, instance=instance, error=str(error))

    def _rest(self, group: str, why: str, now: datetime) -> None:
        before = self._memory.backoffs
        rest = failed(before.get(group), now, why, self._options.health.pauses)
        self._memory = replace(self._memory, backoffs={**before, group: rest})

    async def _empty(self, calls: Calls, looked: Looked) -> None:
        """Taint Nodes that go, and evict their pods; those of earlier looks too, until they are empty."""
        ours = {instance.id for group in looked.groups for instance in group.instances}
        gone = {name for instances in calls.delete.values() for _, name in instances}
        for node in self._watching.objects(NODE):
            name = node["metadata"]["name"]
            if name in gone or str(spec_of(node).get("providerID") or "") not in ours:
                continue
            try:
                if is_leaving(node):
                    await self._go_on(node, looked.now)
                elif name in calls.drain:
                    _log.info("a Node is emptied", node=name, why=calls.drain[name])
                    await self._taint(node, looked.now)
                    await self._evict(name)
            except KubeError as error:
                _log.warning("a Node can't be emptied now", node=name, error=str(error))

    async def _go_on(self, node: Obj, now: datetime) -> None:
        name = node["metadata"]["name"]
        if now - _since(node, now) < DRAINED_WITHIN:
            await self._evict(name)
            return
        _log.warning("a Node has not become empty and stays", node=name, after=str(DRAINED_WITHIN))
        taints = [each for each in spec_of(node)["taints"] if each.get("key") != names.TO_BE_DELETED_TAINT]
        await self._write_taints(node, taints)

    async def _taint(self, node: Obj, now: datetime) -> None:
        taint = {"key": names.TO_BE_DELETED_TAINT, "value": str(int(now.timestamp())), "effect": "NoSchedule"}
        await self._write_taints(node, [*(spec_of(node).get("taints") or ()), taint])

    async def _write_taints(self, node: Obj, taints: list[Obj]) -> None:
        """The whole list: guarded, so that somebody else's taint that came meanwhile does not get lost."""
        patch = {"spec": {"taints": taints or None}}
        written = await self._client.merge_patch(ref_of(NODE, node), patch, resource_version=resource_version_of(node))
        self._watching.cache.wrote(NODE, written)

    async def _evict(self, name: str) -> None:
        """A budget may refuse (429): the next look asks again."""
        for pod in self._watching.objects(POD):
            if spec_of(pod).get("nodeName") != name or is_deleting(pod) or not holds_up(pod):
                continue
            try:
                await self._client.evict(ref_of(POD, pod))
            except ApiError as error:
                _log.info("a pod can't be evicted now", pod=pod["metadata"]["name"], node=name, error=str(error))


def _since(node: Obj, now: datetime) -> datetime:
    """By the taint's value; one that can't be read, or lies ahead, counts as over."""
    for each in spec_of(node).get("taints") or ():
        text = str(each.get("value") or "")
        if each.get("key") == names.TO_BE_DELETED_TAINT and text.isascii() and text.isdigit() and len(text) <= 10:
            reported = datetime.fromtimestamp(int(text), UTC)
            return reported if reported <= now + timedelta(minutes=1) else now - DRAINED_WITHIN
    return now - DRAINED_WITHIN


def _defaults(options: AutoscalerOptions) -> wire.NodeGroupAutoscalingOptions:
    shrink = options.shrink
    found = wire.NodeGroupAutoscalingOptions(
        scaleDownUtilizationThreshold=shrink.utilization_threshold,
        scaleDownGpuUtilizationThreshold=shrink.gpu_utilization_threshold,
        ignoreDaemonSetsUtilization=shrink.ignore_daemon_sets,
    )
    found.scaleDownUnneededDuration.FromTimedelta(shrink.unneeded_time)
    found.MaxNodeProvisionDuration.FromTimedelta(options.growth.provision_time)
    return found


def _problems(cluster: ClusterState, decision: Decision) -> dict[str, str]:
    """What is wrong, by the group or "" for all."""
    found = {bad.ref.key.name: f"{bad.field}: {bad.message}" for bad in cluster.bad}
    found |= {state.id: f"it can't grow: {state.problem}" for state in cluster.groups if state.template is None}
    for state in cluster.groups:
        rest = decision.memory.backoffs.get(state.id)
        if rest is not None and rest.is_on(cluster.now):
            found[state.id] = f"it rests until {rest.until:%H:%M:%S}: {rest.why}"
    return {**found, **({"": decision.frozen} if decision.frozen else {})}
