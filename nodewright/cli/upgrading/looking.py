"""What a cluster has of Nodewright: definitions with the versions they are stored in, and processes that serve."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from http import HTTPStatus

from api.names import SYSTEM_NAMESPACE
from controllers.kernel.refs import LEASE, Key
from nodewright.cli.installation.applying import find
from nodewright.cli.installation.kinds import CRDS
from nodewright.cli.upgrading.own import Controllers, Definition, definition_of
from nodewright.crds import load_crds
from nodewright.reports.tree.serving import live
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError


async def definitions(client: KubeClient) -> list[Definition]:
    """By name. Raises ApiError and NoAnswer."""
    shipped = load_crds()
    there = await asyncio.gather(*(find(client, CRDS, Key("", each["metadata"]["name"])) for each in shipped))
    return [definition_of(ours, live) for ours, live in zip(shipped, there, strict=True)]


async def controllers(client: KubeClient) -> list[Controllers]:
    """Those with a Lease that has not run out; none where Leases may not be read, or their namespace is missing."""
    try:
        page = await client.list_page(LEASE, 0, namespace=SYSTEM_NAMESPACE)
    except ApiError as error:
        if error.code not in {HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN}:
            raise
        return []
    serving = live(page.items, datetime.now(UTC))
    return [Controllers(each.lease, each.findings.version) for each in serving]
