"""kopf as the operator's runtime: it starts, answers probes and stops, watches nothing and writes nothing."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from dataclasses import replace

import aiohttp
import pytest
from aiohttp import test_utils

from controllers.kernel.refs import NODE
from nodewright.runtime import operator as module
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.kube.errors import ConfigurationError
from nodewright.runtime.operator import login_of, operate
from tests.runtime.town import SECONDS, Town


class Running:
    def __init__(self, town: Town) -> None:
        self.health, self.metrics = test_utils.unused_port(), test_utils.unused_port()
        self.options = replace(town.options, health_port=self.health, metrics_port=self.metrics)
        self.stop, self.ready = asyncio.Event(), asyncio.Event()
        self.task = asyncio.create_task(operate(town.connection, self.options, stop=self.stop, ready=self.ready))

    async def get(self, port: int, path: str) -> tuple[int, str]:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
            return answer.status, await answer.text()

    async def is_ready(self) -> None:
        async with asyncio.timeout(SECONDS):
            await self.ready.wait()

    async def end(self) -> None:
        self.stop.set()
        await asyncio.wait_for(self.task, SECONDS)


async def test_it_works_answers_probes_and_stops(town: Town) -> None:
    running = Running(town)
    await running.is_ready()
    await town.machine_set("ms", 2)
    await town.until(lambda: town.ready() == 2)
    assert await running.get(running.metrics, "/readyz") == (200, "ok")
    status, text = await running.get(running.metrics, "/metrics")
    assert status == 200
    assert 'nodewright_reconciles_total{controller="machine",result="settled"}' in text
    status, text = await running.get(running.health, "/healthz")
    assert status == 200
    assert "ok" in text
    await running.end()
    assert len(town.objects(NODE)) == 2, "a stop takes nothing away"


async def test_kopf_itself_neither_watches_nor_writes(town: Town) -> None:
    running = Running(town)
    await running.is_ready()
    await town.machine_set("ms", 1)
    await town.until(lambda: town.ready() == 1)
    await running.end()
    asked = {key for key in town.plane.stats.snapshot() if "kopf" in key.user_agent.lower()}
    assert not [key for key in asked if key.verb not in {"get", ""}], asked


async def test_controllers_that_die_are_started_again(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_RESTART", 0.01)
    lives = 0
    run = module.run_controllers

    async def mortal(*args, **kwargs):  # type: ignore[no-untyped-def]
        nonlocal lives
        lives += 1
        if lives == 1:
            raise RuntimeError("a bug")
        await run(*args, **kwargs)

    monkeypatch.setattr(module, "run_controllers", mortal)
    running = Running(town)
    await running.is_ready()
    assert lives == 2
    await running.end()


async def test_readiness_is_refused_until_everything_is_read(town: Town) -> None:
    current = module._Current()
    server = module.ObservabilityServer("127.0.0.1", 0, current)
    async with server, aiohttp.ClientSession() as session, session.get(f"{server.url}/readyz") as answer:
        assert answer.status == 503
        assert await answer.text() == "[+]ping ok\n[-]controllers failed: starting\nreadyz check failed\n"


async def test_a_connection_that_can_not_be_used_ends_it_at_once(town: Town) -> None:
    broken = Connection("https://127.0.0.1:1", ca=b"no certificate")
    with pytest.raises(ConfigurationError):
        await operate(broken, town.options, stop=asyncio.Event())


async def test_kopf_is_told_of_our_login(town: Town) -> None:
    info = await login_of(town.connection)
    assert info.server == town.connection.server
    assert info.as_ssl_context() is not None
    assert info.expiration is None


STUCK = """
import asyncio
from nodewright.runtime import operator
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.settings.options import RunOptions

async def controllers(*_, stop, **__):
    print("working", flush=True)
    await stop.wait()
    print("stopping", flush=True)
    await asyncio.Event().wait()

operator.run_controllers = controllers
asyncio.run(operator.operate(Connection("http://127.0.0.1:1"), RunOptions(), stop=asyncio.Event()))
"""


def test_a_second_signal_ends_at_once_what_does_not_end_by_the_first() -> None:
    command = [sys.executable, "-c", STUCK]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            for word in ("working", "stopping"):
                assert process.stdout.readline().strip() == word
                process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGTERM
    assert "ended at once, as asked twice" in said
    assert "InvalidStateError" not in said
