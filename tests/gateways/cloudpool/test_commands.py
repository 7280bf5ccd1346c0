"""Both gateways as a person starts them, until they are told to stop."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import pytest

from hack.cloudpool.scene import Scene
from tests.cli.processes import nodewright
from tests.gateways.cloudpool.gateway_process import running


@pytest.mark.slow
async def test_the_proxy_starts_by_the_originals_file_and_ends_by_sigterm(stage: Scene, tmp_path: Path) -> None:
    await stage.node("n1")
    await stage.node("n2")
    file = tmp_path / "config.json"
    auth = {"kubeConfigPath": str(stage.plane.kubeconfig_path)}
    file.write_text(
        json.dumps({"apiServer": {"url": stage.plane.url, "auth": auth}, "backend": {"url": stage.pool.url + "/"}})
    )
    async with running("cloudpool-proxy", f"--config-file={file}", "--port=0", "--v=4") as (url, process):
        async with stage.session.post(f"{url}/pool/size", json={"desiredSize": 1}) as answer:
            assert answer.status == 200
        assert len(stage.pool.terminated) == 1
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 180.0) == 0


@pytest.mark.slow
async def test_the_cloudpool_starts_and_serves(stage: Scene) -> None:
    kubeconfig = f"--kubeconfig={stage.plane.kubeconfig_path}"
    async with running("cloudpool", kubeconfig, "--port=0", "--pool=a=md/default/x", "--pool=b=ms/y") as (url, process):
        async with stage.session.get(f"{url}/cloudpools") as answer:
            assert await answer.json() == [f"{url}/cloudpools/a", f"{url}/cloudpools/b"]
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 180.0) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["cloudpool-proxy", "--config-file=/nowhere.json"], 1, "could not read config"),
        (["cloudpool", "--pool=pods/x"], 2, "'pods/x' is not [NAME=]KIND/[NAMESPACE/]OBJECT"),
        (["cloudpool", "--pool=md/x", "--pool=ms/x"], 2, "two pools are named x"),
        (["cloudpool-proxy", "--version"], 0, ""),
    ],
)
@pytest.mark.slow
def test_what_can_not_be_meant_is_told_in_one_line(arguments: list[str], code: int, told: str) -> None:
    done = nodewright("gateway", *arguments)
    assert done.returncode == code, done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr
