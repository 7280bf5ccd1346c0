"""Fixtures of the cloudpool tests."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator

import pytest
import structlog

from hack.cloudpool.scene import Scene, scene
from nodewright.apiserver.app import APIServer, APIServerConfig
from nodewright.crds import load_crds
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.kubeconfig import load_kubeconfig
from tests.runtime.town import Town


@pytest.fixture(autouse=True)
def quiet_logs() -> Iterator[None]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()


@pytest.fixture
async def stage() -> AsyncIterator[Scene]:
    async with scene() as found:
        yield found


@pytest.fixture
async def town() -> AsyncIterator[Town]:
    async with APIServer(APIServerConfig(crds=tuple(load_crds()))) as plane:
        connection = await load_kubeconfig([plane.kubeconfig_path])
        async with KubeClient(connection, "tests") as client:
            yield Town(plane, connection, client)
