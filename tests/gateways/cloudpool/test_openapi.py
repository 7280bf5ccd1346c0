"""The OpenAPI document says what the server does: held against it by schemathesis, and by the routes."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
import structlog

from hack.cloudpool.scene import Scene
from nodewright.gateways.cloudpool.instances import Instances
from nodewright.gateways.cloudpool.openapi import document
from tests.gateways.cloudpool.test_server import WORKERS, served
from tests.runtime.town import Town

SEED = "8"
UNSETTLING = "^/cloudpools/{name}$|/config$|/stop$"
"""Pools would come, go and stop under the other requests."""
CHECKS = "status_code_conformance,content_type_conformance,response_schema_conformance,negative_data_rejection"


@pytest.mark.slow
async def test_whatever_is_sent_the_answers_are_those_of_the_document(town: Town, tmp_path: Path) -> None:
    await town.machine_set("workers", 2)
    config = tmp_path / "schemathesis.toml"
    config.write_text('[parameters]\n"path.name" = "workers"\n')
    pools = Instances({"workers": WORKERS})
    with structlog.testing.capture_logs() as logs:
        async with town.controllers(), served(town, pools) as client:
            await client.runs(2)
        # Nobody makes the billions of Machines that are about to be asked for.
        async with served(town, pools) as client:
            process = await asyncio.create_subprocess_exec(
                str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(config),
                "run", f"{client.url}/openapi.json",
                "--checks", CHECKS, "--max-examples", "8", "--seed", SEED, "--phases", "examples,coverage,fuzzing",
                "--exclude-path-regex", UNSETTLING,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            )  # fmt: skip
            told, _ = await process.communicate()
    assert process.returncode == 0, told.decode()
    assert "Tested: 21" in told.decode(), told.decode()
    assert [log for log in logs if log["event"] == "a request failed unexpectedly"] == []


def test_every_endpoint_of_the_api_is_described() -> None:
    described = {
        f"{method.upper()} {path}"
        for path, item in document()["paths"].items()
        for method in item
        if method in {"get", "post", "delete"}
    }
    one = {
        "GET /config", "POST /config", "POST /start", "POST /stop", "GET /status", "GET /pool", "GET /pool/size",
        "POST /pool/size", "POST /pool/terminate", "POST /pool/detach", "POST /pool/attach", "POST /pool/serviceState",
        "POST /pool/membershipStatus",
    }  # fmt: skip
    assert len(one) == 13
    of_many = {f"{m} /cloudpools/{{name}}{p}" for m, p in (each.split(" ") for each in one)}
    several = {"GET /cloudpools", "POST /cloudpools/{name}", "DELETE /cloudpools/{name}"}
    assert described == one | of_many | several


@pytest.mark.slow
async def test_the_server_serves_it(town: Town) -> None:
    async with served(town, Instances({})) as client:
        assert await client("GET", "/openapi.json") == (200, document())


async def test_the_proxy_serves_it_beside_what_it_forwards(stage: Scene) -> None:
    await stage.start()
    assert await stage.ask("GET", "/.nodewright/openapi.json") == (200, document())
