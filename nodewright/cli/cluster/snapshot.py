"""One consistent-enough copy of a cluster, read by lists, in the same cache that the controllers decide from."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from controllers.kernel.node_policy import kubeconfig_secret_of
from controllers.kernel.refs import (
    CLUSTER,
    CONTROL_PLANE,
    MACHINE,
    MACHINE_CLASS,
    MACHINE_DEPLOYMENT,
    MACHINE_DRAIN_RULE,
    MACHINE_HEALTH_CHECK,
    MACHINE_SET,
    NODE,
    OPTIONAL_KINDS,
    SECRET,
    Key,
    Kind,
    Obj,
)
from nodewright.cli.exits import CliError
from nodewright.runtime.cache.cache import Cache, CacheView
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError, KubeError
from nodewright.runtime.workloads.options import WorkloadOptions
from nodewright.runtime.workloads.secret import connection_in

OUR_KINDS = (CLUSTER, CONTROL_PLANE, MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE, MACHINE_CLASS, MACHINE_HEALTH_CHECK)
KINDS = (*OUR_KINDS, MACHINE_DRAIN_RULE, NODE)
_ALL = (Key("", ""),)
_MAY_LACK = frozenset({CONTROL_PLANE})
"""Kinds that a server may not serve, or show to everybody, yet: then there are none of them."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A list that was read to its end."""

    complete: bool = True
    current_for: float | None = float("inf")


async def read_cluster(
    client: KubeClient, kinds: Iterable[Kind] = KINDS, parts: Mapping[Kind, tuple[Key, ...]] | None = None
) -> Cache:
    """All objects of ``kinds``, or those ``parts`` of them. Raises ApiError and NoAnswer as the client does."""
    wanted = tuple(kinds)
    cache = Cache(wanted)
    reading = (_read_all(client, kind, (parts or {}).get(kind, _ALL)) for kind in wanted)
    for kind, (objects, version) in zip(wanted, await asyncio.gather(*reading), strict=True):
        fill(cache, kind, objects, version)
    return cache


async def read_workload_cluster(
    client: KubeClient, cluster: Key, kinds: Iterable[Kind], parts: Mapping[Kind, tuple[Key, ...]]
) -> Cache:
    """The same in the cluster of its own that ``cluster`` has, by its kubeconfig Secret. Raises CliError too."""
    key = kubeconfig_secret_of(cluster)
    try:
        options = WorkloadOptions()
        connection = connection_in(await client.get(SECRET, key), options.servers)
        async with KubeClient(connection, "cli", options.client) as there:
            return await read_cluster(there, kinds, parts)
    except KubeError as error:
        raise CliError(f"Cluster {cluster} can't be reached: {error}", f"The way there is Secret {key}") from error


def fill(cache: Cache, kind: Kind, objects: list[dict[str, Any]], version: str = "") -> None:
    """Put a complete list into ``cache``."""
    cache.listed(kind, objects, version)
    cache.keep_complete(kind, _Read())


def now_view(cache: Cache) -> CacheView:
    return cache.view(datetime.now(UTC))


def objects_of(cache: Cache, kind: Kind) -> list[Obj]:
    return list(cache.stores[kind])


async def _read_all(client: KubeClient, kind: Kind, part: Sequence[Key]) -> tuple[list[dict[str, Any]], str]:
    found = await asyncio.gather(*(_read_part(client, kind, key) for key in part))
    return [obj for objects, _ in found for obj in objects], found[0][1]


async def _read_part(client: KubeClient, kind: Kind, part: Key) -> tuple[list[dict[str, Any]], str]:
    for attempt in range(3):
        try:
            return await _pages(client, kind, part)
        except ApiError as error:
            if kind in _MAY_LACK and (error.not_found or error.code == HTTPStatus.FORBIDDEN):
                return [], ""
            if kind in OPTIONAL_KINDS and error.not_found:
                return [], ""
            # The list grew too old between two pages: it has to be read anew.
            if not error.expired or attempt == 2:
                raise
    raise AssertionError("unreachable")


async def _pages(client: KubeClient, kind: Kind, part: Key) -> tuple[list[dict[str, Any]], str]:
    objects: list[dict[str, Any]] = []
    page = await client.list_page(kind, namespace=part.namespace, name=part.name)
    objects.extend(page.items)
    while page.continue_:
        page = await client.list_page(kind, continue_=page.continue_, namespace=part.namespace, name=part.name)
        objects.extend(page.items)
    return objects, page.resource_version
