"""Play the kubelets of simulated hosts: register their Nodes and report their status through the API server.

The simulated provider knows no Kubernetes, so this is where its hosts become Nodes. A real kubelet never deletes its
Node, and neither does this: a Node whose host is gone becomes NotReady, as the node lifecycle controller would have it.
There are no heartbeats: a Node is written when something about it changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from time import thread_time
from types import TracebackType
from typing import Any

import structlog

from controllers.kernel.conditions import format_time
from controllers.kernel.refs import NODE, Key, Ref
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError, KubeError
from providers.simulated.hosts import SimulatedHost
from providers.simulated.kubelet import node_for, ready_since
from providers.simulated.world import World

_log = structlog.get_logger("nodewright.kubelets")

USER_AGENT = "simulated-kubelet"
Worlds = Callable[[], Mapping[str, World]]

_TICK = 0.1
_SHARE = 20
"""A scan takes at most one part in so many of the time, by the CPU time that it takes: other programs of the machine
are no reason to look less often.
"""
_SILENCE = 1.0
"""Seconds that a kubelet may be silent before its Node is called NotReady (real clusters: 40)."""
_RETRY = 1.0
_AT_ONCE = 64
"""Nodes that are written at a time; each kubelet of real hosts writes by itself."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What makes two statuses of a Node differ."""

    host: str
    kubelet_runs: bool
    ready_since: datetime | None
    spec_hash: str


@dataclass(slots=True)
class _Node:
    uid: str = ""
    written: _Seen | None = None
    silent_since: float | None = None
    not_before: float = 0.0


def all_worlds() -> Mapping[str, World]:
    """The clouds of the installed simulated provider."""
    from providers.simulated import WORLDS  # noqa: PLC0415  (tests bring worlds of their own)

    return WORLDS.all


class SimulatedKubelets:
    """Those of all clusters: a host's kubelet joins the cluster that its Machine belongs to."""

    def __init__(self, worlds: Worlds, now: Callable[[], datetime], mark: Callable[[], str] = lambda: "") -> None:
        """``mark``: of the management cluster; hosts that carry another one are another process's to play."""
        self._worlds = worlds
        self._now = now
        self._mark = mark

    def in_management_cluster(self, client: KubeClient, is_management_cluster: Callable[[Key], bool]) -> Kubelets:
        """Of Machines without a Cluster, and of Clusters that have no API of their own."""

        def here(host: SimulatedHost) -> bool:
            cluster = _cluster_of(host)
            return not self._is_elsewhere(host) and (cluster is None or is_management_cluster(cluster))

        return Kubelets(client, self._worlds, self._now, here)

    def of_cluster(self, cluster: Key, client: KubeClient) -> Kubelets:
        def here(host: SimulatedHost) -> bool:
            return not self._is_elsewhere(host) and _cluster_of(host) == cluster

        return Kubelets(client, self._worlds, self._now, here)

    def _is_elsewhere(self, host: SimulatedHost) -> bool:
        theirs, ours = host.request.identity.management_cluster, self._mark()
        return bool(theirs and ours) and theirs != ours


class Kubelets:
    """Simulated kubelets of one cluster. An async context manager: they run until it is left. ``here`` says which hosts
    join it. A Node whose host runs and joins another one is not silent: its host was handed over.
    """

    def __init__(
        self,
        client: KubeClient,
        worlds: Worlds,
        now: Callable[[], datetime],
        here: Callable[[SimulatedHost], bool] = lambda _host: True,
    ) -> None:
        self._client = client.named("kubelets", USER_AGENT)
        self._worlds = worlds
        self._now = now
        self._here = here
        self._nodes: dict[str, _Node] = {}
        self._task: asyncio.Task[None] | None = None
        self._writing: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Kubelets:
        self._task = asyncio.create_task(self._run(), name="kubelets")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        tasks = (self._task, *self._writing.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self) -> None:
        known = False
        while True:
            scan = 0.0
            try:
                if not known and self._worlds():
                    await self._remember_nodes()
                    known = True
                if known:
                    started = thread_time()
                    due = self._due(self._now())
                    scan = thread_time() - started
                    self._start(due)
            except KubeError as error:
                _log.debug("kubelets can't reach the API server", error=str(error))
                await asyncio.sleep(_RETRY)
            except Exception:
                _log.exception("kubelets failed")
                await asyncio.sleep(_RETRY)
            await asyncio.sleep(max(_TICK, _SHARE * scan))

    async def tick(self) -> None:
        """Bring every Node up to date with its host once."""
        due = self._due(self._now())
        while due:
            self._start(due)
            await asyncio.gather(*self._writing.values())
            due = due[_AT_ONCE:]

    def _start(self, due: Iterable[tuple[str, SimulatedHost | None]]) -> None:
        """Write as many of these as may be at a time; one that is slow holds up no other."""
        for name, host in due:
            if len(self._writing) >= _AT_ONCE:
                return
            if name not in self._writing:
                writing = self._write(name, self._nodes[name], host)
                self._writing[name] = asyncio.create_task(writing, name=f"kubelet of {name}")

    def _due(self, now: datetime) -> list[tuple[str, SimulatedHost | None]]:
        """The Nodes to write now, with their hosts (None: gone)."""
        booted = [host for world in self._worlds().values() for host in world.booted()]
        hosts = {host.name: host for host in booted if self._here(host)}
        for host in booted:
            if (
                host.name not in hosts
            ):  # it runs, and another one plays it: of the same API, where a cluster is in itself
                self._nodes.pop(host.name, None)
        due: list[tuple[str, SimulatedHost | None]] = []
        for name, host in hosts.items():
            if self._is_due(name, host, now):
                due.append((name, host))
        for name, node in self._nodes.items():
            if name not in hosts and (node.written is None or node.written.kubelet_runs) and self._fell_silent(node):
                due.append((name, None))
        return due

    def _is_due(self, name: str, host: SimulatedHost, now: datetime) -> bool:
        node = self._nodes.get(name)
        if node is None:
            self._nodes[name] = _Node()
            return True
        seen = _look(host, now)
        if seen == node.written:
            node.silent_since = None
            return False
        if not seen.kubelet_runs and node.written is not None and node.written.kubelet_runs:
            return self._fell_silent(node)
        node.silent_since = None
        return self._time() >= node.not_before

    def _fell_silent(self, node: _Node) -> bool:
        now = self._time()
        if node.silent_since is None:
            node.silent_since = now
        return now - node.silent_since >= _SILENCE and now >= node.not_before

    async def _write(self, name: str, node: _Node, host: SimulatedHost | None) -> None:
        try:
            await (self._vanished(name, node) if host is None else self._report(node, host, self._now()))
        except KubeError as error:
            node.not_before = self._time() + _RETRY
            _log.debug("node could not be written", node=name, error=str(error))
        except Exception:
            node.not_before = self._time() + _RETRY
            _log.exception("kubelet failed", node=name)
        finally:
            del self._writing[name]

    async def _report(self, node: _Node, host: SimulatedHost, now: datetime) -> None:
        body = node_for(host, host.request_at(now), now)
        if not node.uid:
            node.uid = await self._register(body)
        else:
            try:
                await self._client.report_status(Ref(NODE, Key("", host.name), node.uid), body["status"])
            except ApiError as error:
                if not error.not_found and not error.conflict:
                    raise
                node.uid = await self._register(body)
        node.written = _look(host, now)
        node.silent_since = None

    async def _register(self, body: dict[str, Any]) -> str:
        """Create the Node, or take over the one that is there if it is this host's. Answers its uid.

        Raises ApiError (409) while another host's Node has the name.
        """
        name, status = body["metadata"]["name"], body["status"]
        try:
            node = await self._client.create(NODE, body)
        except ApiError as error:
            if not error.already_exists:
                raise
            node = await self._client.get(NODE, Key("", name))
            if (node.get("spec") or {}).get("providerID") != body["spec"]["providerID"]:
                raise
        uid: str = node["metadata"]["uid"]
        if not _says(node.get("status") or {}, status):  # it was there already, or its status was not taken
            await self._client.report_status(Ref(NODE, Key("", name), uid), status)
        return uid

    async def _vanished(self, name: str, node: _Node) -> None:
        """The host is gone. Its Node stays, NotReady, until the Machine's controller removes it."""
        try:
            current = await self._client.get(NODE, Key("", name))
            if current["metadata"]["uid"] == node.uid:
                status = {"conditions": _silent(current, format_time(self._now()))}
                await self._client.report_status(Ref(NODE, Key("", name), node.uid), status)
        except ApiError as error:
            if not error.not_found and not error.conflict:
                raise
        self._nodes.pop(name, None)

    async def _remember_nodes(self) -> None:
        """After a restart: whose Node is there already, so that those without a host become NotReady."""
        continue_ = ""
        while True:
            page = await self._client.list_page(NODE, continue_=continue_)
            for node in page.items:
                if str((node.get("spec") or {}).get("providerID", "")).startswith("simulated://"):
                    meta = node["metadata"]
                    self._nodes.setdefault(meta["name"], _Node(meta["uid"]))
            continue_ = page.continue_
            if not continue_:
                return

    def _time(self) -> float:
        return asyncio.get_running_loop().time()


def _cluster_of(host: SimulatedHost) -> Key | None:
    identity = host.request.identity
    return Key(identity.namespace, identity.cluster) if identity.cluster else None


def _look(host: SimulatedHost, now: datetime) -> _Seen:
    return _Seen(host.id, host.kubelet_runs(now), ready_since(host, now), host.request_at(now).spec_hash)


def _says(found: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    """Whether a Node's status has these conditions, and these versions: another process may have written it before."""
    info = found.get("nodeInfo") or {}
    same = all(info.get(name) == value for name, value in status["nodeInfo"].items())
    return same and _condition_states(found) == _condition_states(status)


def _condition_states(status: Mapping[str, Any]) -> set[tuple[str, str]]:
    return {(c.get("type", ""), c.get("status", "")) for c in status.get("conditions") or ()}


def _silent(node: Mapping[str, Any], now: str) -> list[dict[str, Any]]:
    """The Node's conditions with Ready Unknown, as the node lifecycle controller writes it."""
    before = (node.get("status") or {}).get("conditions") or ()
    beat = next((c["lastHeartbeatTime"] for c in before if c.get("type") == "Ready" and "lastHeartbeatTime" in c), now)
    conditions = [dict(c) for c in before if c.get("type") != "Ready"]
    conditions.append(
        {
            "type": "Ready",
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
            "lastTransitionTime": now,
            "lastHeartbeatTime": beat,
        }
    )
    return conditions
