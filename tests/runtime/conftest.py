"""Fixtures of the runtime tests."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator

import pytest
import structlog

from nodewright.apiserver.app import APIServer, APIServerConfig
from nodewright.crds import load_crds
from nodewright.runtime.kube.client import ClientLimits, KubeClient
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.kube.kubeconfig import load_kubeconfig
from tests.runtime.stub_server import StubServer, serve
from tests.runtime.town import Town

QUICK = ClientLimits(backoff=0.001, watch_silence=120, request_timeout=120)


@pytest.fixture(autouse=True)
def quiet_logs() -> Iterator[None]:
    """Nothing below critical is printed; what a test wants to see of logs it captures itself."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()


@pytest.fixture
async def stub() -> AsyncIterator[StubServer]:
    async with serve(StubServer()) as server:
        yield server


@pytest.fixture
async def client(stub: StubServer) -> AsyncIterator[KubeClient]:
    async with KubeClient(Connection(stub.url), "tests", QUICK) as kube:
        yield kube


@pytest.fixture
async def town() -> AsyncIterator[Town]:
    async with APIServer(APIServerConfig(crds=tuple(load_crds()))) as plane:
        connection = await load_kubeconfig([plane.kubeconfig_path])
        async with KubeClient(connection, "tests") as client:
            yield Town(plane, connection, client)
