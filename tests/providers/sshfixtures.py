"""Fixtures of tests in the fast world of hosts: a test file has its own ``world`` and takes these from here."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from providers.ssh.provider import SSHProvider
from tests.providers.sshworld import POOL, World


@pytest_asyncio.fixture
async def provider(world: World) -> AsyncIterator[SSHProvider]:
    """Of the pool of ``world``; its connections end with the test."""
    made = SSHProvider(POOL, world.secrets, world.objects)
    yield made
    await made.close()
