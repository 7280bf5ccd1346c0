"""A control plane, the gateway on it, and a client that calls as the Cluster Autoscaler does."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.gateways.externalgrpc.caller import Caller, Serving, serving
from tests.runtime.conftest import quiet_logs, town
from tests.runtime.town import Town

__all__ = ["quiet_logs", "town"]


@pytest.fixture
async def served(town: Town) -> AsyncIterator[Serving]:
    async with serving(town) as found:
        yield found


@pytest.fixture
def caller(served: Serving) -> Caller:
    return served.caller
