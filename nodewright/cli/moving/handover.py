"""Hosts and Nodes of a moved Cluster become those of its copies. Each step may be repeated, and restarts nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from api import names
from api.providerconfig import ProviderConfigError, read, read_class
from controllers.kernel.endpoints import recorded_of
from controllers.kernel.node_policy import endpoint_of
from controllers.kernel.ownership import cluster_name_of
from controllers.kernel.refs import (
    CLUSTER,
    MACHINE,
    MACHINE_CLASS,
    NODE,
    SECRET,
    Key,
    Obj,
    annotations_of,
    key_of,
    labels_of,
    mapping,
    ref_of,
    spec_of,
    status_of,
    uid_of,
)
from nodewright.cli.exits import CliError
from nodewright.cli.moving.graph import Item
from nodewright.cli.moving.sides import Side
from nodewright.runtime.hosts.credentials import NamespaceSecrets
from nodewright.runtime.hosts.objects import NamespaceObjects
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ConfigurationError
from nodewright.runtime.workloads.secret import connection_in
from providers.base.capabilities import RebindsHosts
from providers.base.contract import Host, HostIdentity, Provider
from providers.base.endpoints import EndpointRequest, RebindsEndpoints
from providers.base.errors import ProviderError
from providers.base.registry import Registry, ScopeKey

GO_ON = "See to it, and run the same command again: it goes on where it ended"


@dataclass(frozen=True, slots=True)
class Transfer:
    """One Machine: as whose its host is known before and after."""

    config: Mapping[str, Any]
    old: HostIdentity
    new: HostIdentity


class Hosts:
    """The providers of Machines, opened with the logins that ``side`` holds."""

    def __init__(self, registry: Registry, side: Side) -> None:
        self._registry = registry
        self._side = side
        self._opened: dict[ScopeKey, Provider] = {}

    async def hindrances(self, items: Iterable[Item]) -> list[str]:
        """Machines whose hosts can't be handed over, with the reason."""
        every = list(items)
        listed: dict[ScopeKey, set[str]] = {}
        machines = [item for item in every if item.kind == MACHINE]
        reasons = [(item, await self._hindrance(item.obj, every, listed)) for item in machines]
        reasons += [(item, self._hindrance_of_endpoint(item.obj)) for item in every if item.kind == CLUSTER]
        return [f"{item.title}: {reason}" for item, reason in reasons if reason]

    def _hindrance_of_endpoint(self, cluster: Obj) -> str:
        """Why the endpoint that a provider has made for it can't be handed over, "" if it can, or there is none."""
        config = recorded_of(cluster)
        if config is not None and not endpoint_of(cluster):
            return "its endpoint is being made"
        try:
            found = self._provider(config, key_of(cluster).namespace) if config is not None else None
        except (ProviderError, ProviderConfigError, LookupError) as error:
            return str(error)
        if found is None or isinstance(found[0], RebindsEndpoints):
            return ""
        return f"provider {found[1].provider} can't hand its endpoint over"

    async def _hindrance(self, machine: Obj, every: list[Item], listed: dict[ScopeKey, set[str]]) -> str:
        """Why its host can't be handed over, "" if it can. ``listed``: UIDs of the Machines of the hosts of a scope."""
        try:
            config = config_of(machine, every)
            provider, scope = self._provider(config, key_of(machine).namespace)
            if not isinstance(provider, RebindsHosts):
                return f"provider {scope.provider} can't hand hosts over"
            if scope not in listed:
                listed[scope] = {host.machine_uid for host in await provider.list()}
        except (ProviderError, ProviderConfigError, LookupError) as error:
            return str(error)
        return "" if uid_of(machine) in listed[scope] else "its provider shows no host of it"

    async def hand_over(self, transfers: Iterable[Transfer]) -> int:
        """How many hosts were found. Raises CliError where a provider refuses or does not answer."""
        by_scope: dict[ScopeKey, list[Transfer]] = {}
        for each in transfers:
            by_scope.setdefault(self._provider(each.config, each.old.namespace)[1], []).append(each)
        count = 0
        for scope, several in by_scope.items():
            provider = self._opened[scope]
            try:
                hosts = {host.machine_uid: host for host in await provider.list()}
                for each in several:
                    count += await _hand_over(provider, each, hosts)
            except ProviderError as error:
                raise CliError(f"provider {scope.provider}: {error.message}", GO_ON) from error
        return count

    async def hand_over_endpoint(self, cluster: Obj, old_uid: str) -> None:
        """``cluster``: as it is at the target. Raises CliError where its provider refuses or does not answer."""
        config, key = recorded_of(cluster), key_of(cluster)
        if config is None:
            return
        provider, scope = self._provider(config, key.namespace)
        assert isinstance(provider, RebindsEndpoints)
        request = EndpointRequest(old_uid, key.namespace, key.name, config)
        try:
            await provider.rebind_endpoint(request, uid_of(cluster))
        except ProviderError as error:
            raise CliError(f"provider {scope.provider}: {error.message}", GO_ON) from error

    async def close(self) -> None:
        for provider in self._opened.values():
            closing = getattr(provider, "close", None)
            if closing is not None:
                await closing()

    def _provider(self, config: Mapping[str, Any], namespace: str) -> tuple[Provider, ScopeKey]:
        """Raises LookupError for a config that no provider has."""
        scope = self._registry.scope(config, namespace)
        if scope not in self._opened:
            registration = self._registry.named(scope.provider)
            assert registration is not None
            name, secrets = registration.scope_of(config), NamespaceSecrets(self._side.client, namespace)
            if registration.open_with_objects is not None:
                objects = NamespaceObjects(self._side.client, namespace)
                self._opened[scope] = registration.open_with_objects(name, config, secrets, objects)
            elif registration.open_with_secrets is not None:
                self._opened[scope] = registration.open_with_secrets(name, config, secrets)
            else:
                self._opened[scope] = registration.open(name, config)
        return self._opened[scope], scope


async def _hand_over(provider: Provider, transfer: Transfer, hosts: Mapping[str, Host]) -> int:
    """0: the host is gone; the Machine's controller at the target sees to that, as anywhere."""
    host = hosts.get(transfer.new.machine_uid) or hosts.get(transfer.old.machine_uid)
    if host is None:
        return 0
    if host.machine_uid != transfer.new.machine_uid:
        assert isinstance(provider, RebindsHosts)
        await provider.rebind(host, transfer.old, transfer.new)
    return 1


def config_of(machine: Obj, items: Iterable[Item]) -> Mapping[str, Any]:
    """What its provider gets. Raises ProviderConfigError, LookupError without its MachineClass."""
    found = read(spec_of(machine))
    if found is None:
        raise LookupError("it names no provider")
    if found.machine_class_ref is None:
        return found.value or {}
    name = found.machine_class_ref.name
    classes = [item.obj for item in items if item.kind == MACHINE_CLASS and key_of(item.obj).name == name]
    if not classes:
        raise LookupError(f"there is no MachineClass {name}")
    return read_class(classes[0]).value or {}


def transfers(items: Iterable[Item], uids: Mapping[str, str], marks: tuple[str, str]) -> list[Transfer]:
    """``items``: as they are at the target. ``uids``: from the source's. ``marks``: of source and target."""
    every, old_of = list(items), {new: old for old, new in uids.items()}
    found = []
    for item in every:
        if item.kind == MACHINE and uid_of(item.obj) in old_of:
            key, cluster = key_of(item.obj), cluster_name_of(item.obj)
            old = HostIdentity(old_of[uid_of(item.obj)], key.namespace, key.name, cluster, marks[0])
            new = HostIdentity(uid_of(item.obj), key.namespace, key.name, cluster, marks[1])
            found.append(Transfer(config_of(item.obj, every), old, new))
    return found


async def rename_owners(side: Side, cluster: Key, machines: Iterable[Obj], uids: Mapping[str, str]) -> None:
    """On each Node, in the Cluster's own API: the UID of its Machine. Raises CliError if it can't be reached."""
    secret = await side.find(SECRET, Key(cluster.namespace, f"{cluster.name}{names.KUBECONFIG_SUFFIX}"))
    if secret is None:
        raise CliError(f"{side.title} has no kubeconfig of Cluster {cluster}", GO_ON)
    try:
        connection = connection_in(secret)
    except ConfigurationError as error:
        raise CliError(str(error), GO_ON) from error
    async with KubeClient(connection, "cli") as client:
        workload = Side(client, f"Cluster {cluster}")
        for machine in machines:
            name = mapping(status_of(machine).get("nodeRef")).get("name")
            node = await workload.find(NODE, Key("", str(name))) if name else None
            patch = node_patch(node, uids) if node is not None else {}
            if node is not None and patch:
                await client.merge_patch(ref_of(NODE, node), patch)


def node_patch(node: Obj, uids: Mapping[str, str]) -> dict[str, Any]:
    """{} if it names no Machine that has moved."""
    annotations = {
        name: uids[value]
        for name in (names.NODE_MACHINE_UID_ANNOTATION,)
        if (value := str(annotations_of(node).get(name))) in uids
    }
    owner = str(labels_of(node).get(names.NODE_OWNED_BY_LABEL))
    labels = {names.NODE_OWNED_BY_LABEL: uids[owner]} if owner in uids else {}
    metadata = {**({"annotations": annotations} if annotations else {}), **({"labels": labels} if labels else {})}
    return {"metadata": metadata} if metadata else {}
