"""A plane in memory for each test, with the Widget kind, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from nodewright.apiserver.app import APIServer, APIServerConfig, Limits
from tests.apiserver.app.client import Client, client_of
from tests.kubectl.manifests import WIDGET_CRD


@pytest.fixture
def limits() -> Limits:
    """The bounds of the plane; tests may override this."""
    return Limits()


@pytest.fixture
async def plane(limits: Limits) -> AsyncIterator[APIServer]:
    """A plane that keeps nothing."""
    async with APIServer(APIServerConfig(crds=(WIDGET_CRD,), limits=limits)) as plane:
        yield plane


@pytest.fixture
async def api(plane: APIServer) -> AsyncIterator[Client]:
    """The administrator's client."""
    async with client_of(plane) as client:
        yield client
