"""Start the web view on a cluster: with the program's own credentials, or with those that each viewer brings."""

from __future__ import annotations

import secrets
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nodewright.gateways.cloudpool.listener import ListenerOptions
    from nodewright.gateways.web.server import WebServer
    from nodewright.gateways.web.source import Source
    from nodewright.runtime.kube.connection import Connection

FIRST_READ = 20.0
"""Seconds for the API server to answer a login."""


def web_server(
    connection: Connection, listener: ListenerOptions, *, namespace: str = "", own_tokens: bool = False
) -> WebServer:
    """``own_tokens``: viewers log in with bearer tokens of the cluster; else the first one has a link with a token."""
    from nodewright.cli.web import planning  # noqa: PLC0415
    from nodewright.gateways.web.server import WebOptions, WebServer  # noqa: PLC0415

    one_time = None if own_tokens else secrets.token_urlsafe(24)
    options = WebOptions(
        listener,
        one_time,
        connection.server,
        more={"autoscaler": planning.autoscaler},
        questions={"plan": planning.plan, "whatif": planning.what_if},
    )

    async def open_source(stack: AsyncExitStack, token: str, wanted: str) -> Source:
        return await _source(stack, _as_viewer(connection, token), wanted or namespace)

    return WebServer(open_source, options)


def _as_viewer(connection: Connection, token: str) -> Connection:
    """With the viewer's token and nothing of the program's own rights."""
    from nodewright.runtime.kube.connection import StaticToken  # noqa: PLC0415

    if not token:
        return connection
    return replace(connection, tokens=StaticToken(token), client_certificate=b"", client_key=b"")


async def _source(stack: AsyncExitStack, connection: Connection, namespace: str) -> Source:
    """Raises KubeError where not even Machines may be listed: a page that shows nothing helps nobody."""
    from controllers.kernel.refs import MACHINE  # noqa: PLC0415
    from nodewright.gateways.web.source import Source  # noqa: PLC0415
    from nodewright.runtime.kube.client import KubeClient  # noqa: PLC0415

    client = await stack.enter_async_context(KubeClient(connection, "web"))
    await client.list_page(MACHINE, 1, namespace=namespace)
    return await stack.enter_async_context(Source(client, namespace))


def lines(server: WebServer) -> list[str]:
    """What a person is told."""
    note = "" if "#token=" not in server.link else "  (good for one browser; `nodewright ui` opens another)"
    return [f"Web view: {server.link}{note}"]
