"""Fixtures of the cloudpool tests."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator

import pytest
import structlog

from tests.gateways.cloudpool.scene import Scene, scene


@pytest.fixture(autouse=True)
def quiet_logs() -> Iterator[None]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()


@pytest.fixture
async def stage() -> AsyncIterator[Scene]:
    async with scene() as found:
        yield found
