"""Health endpoints answer as a kube-apiserver's do, and /metrics shows what is counted at that moment."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from nodewright.runtime.fleet.collectors import _family
from nodewright.runtime.telemetry import metrics
from nodewright.runtime.telemetry.observability import ObservabilityServer


class Program:
    def __init__(self) -> None:
        self.checks = {"controllers": "", "watch-machines": ""}
        self.count = 3.0

    def readiness(self) -> dict[str, str]:
        return self.checks

    def families(self) -> Iterable[object]:
        return [_family(metrics.QUEUE_DEPTH, [(("machine",), self.count)])]


@pytest.fixture
def program() -> Program:
    return Program()


@pytest.fixture
async def server(program: Program) -> AsyncIterator[ObservabilityServer]:
    async with ObservabilityServer("127.0.0.1", 0, program) as running:
        yield running


async def get(server: ObservabilityServer, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(server.url + path) as answer:
        return answer.status, await answer.text()


@pytest.mark.parametrize("path", ["/livez", "/healthz", "/readyz", "/readyz/ping", "/readyz/watch-machines"])
async def test_what_is_well_says_ok(server: ObservabilityServer, path: str) -> None:
    assert await get(server, path) == (200, "ok")


async def test_verbose_shows_every_check(server: ObservabilityServer) -> None:
    lines = "[+]ping ok\n[+]controllers ok\n[+]watch-machines ok\nreadyz check passed\n"
    assert await get(server, "/readyz?verbose") == (200, lines)


async def test_what_is_not_ready_is_named_with_its_reason(server: ObservabilityServer, program: Program) -> None:
    program.checks["watch-machines"] = "no answer"
    lines = "[+]ping ok\n[+]controllers ok\n[-]watch-machines failed: no answer\nreadyz check failed\n"
    assert await get(server, "/readyz") == (503, lines)
    assert (await get(server, "/readyz/watch-machines"))[0] == 503
    assert await get(server, "/readyz/controllers") == (200, "ok")
    assert (await get(server, "/livez"))[0] == 200, "a restart heals no API server"


async def test_a_check_can_be_left_out(server: ObservabilityServer, program: Program) -> None:
    program.checks["watch-machines"] = "no answer"
    assert await get(server, "/readyz?exclude=watch-machines") == (200, "ok")
    assert "[+]watch-machines excluded: ok" in (await get(server, "/readyz?verbose&exclude=watch-machines"))[1]


async def test_a_check_that_does_not_exist_is_not_found(server: ObservabilityServer) -> None:
    assert (await get(server, "/readyz/nonsense"))[0] == 404


async def test_metrics_are_those_of_the_moment(server: ObservabilityServer, program: Program) -> None:
    assert 'nodewright_queue_depth{controller="machine"} 3.0' in (await get(server, "/metrics"))[1]
    program.count = 5.0
    text = (await get(server, "/metrics"))[1]
    assert 'nodewright_queue_depth{controller="machine"} 5.0' in text
    assert "process_cpu_seconds_total" in text


async def test_what_is_scraped_can_be_parsed_and_has_no_family_twice(server: ObservabilityServer) -> None:
    families = [family.name for family in text_string_to_metric_families((await get(server, "/metrics"))[1])]
    assert len(families) == len(set(families)) > 20
