"""Which API server a cluster has, and which of our CRDs it serves."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from nodewright.crds import load_crds
from nodewright.reports.fleet.summary import Platform
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError


async def platform_of(client: KubeClient) -> Platform:
    """From discovery, which everybody with a login may read: one request for each version of a group."""
    crds = load_crds()
    versions = sorted({at for crd in crds for at in _versions(crd)})
    answer, *listed = await asyncio.gather(client.version(), *(_plurals(client, *at) for at in versions))
    found = dict(zip(versions, listed, strict=True))
    served = {
        crd["metadata"]["name"]: tuple(at[1] for at in _versions(crd) if crd["spec"]["names"]["plural"] in found[at])
        for crd in crds
    }
    return Platform(str(answer.get("gitVersion") or "unknown"), served)


def _versions(crd: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Group and version of each version that we serve."""
    spec = crd["spec"]
    return [(spec["group"], each["name"]) for each in spec["versions"] if each.get("served")]


async def _plurals(client: KubeClient, group: str, version: str) -> frozenset[str]:
    try:
        return frozenset(str(each.get("name")) for each in await client.resources(group, version))
    except ApiError as error:
        if not error.not_found:
            raise
        return frozenset()
