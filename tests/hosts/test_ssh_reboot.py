"""Hosts with real sshd and systemd are rebooted: once for each attempt, and by their power command while they hang."""

from __future__ import annotations

import asyncio
import json
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hack.hosts.guests import Guest
from hack.hosts.lab import Lab
from providers.base import power
from providers.base.contract import Host
from providers.ssh.provider import SSHProvider
from tests.hosts import sshpools
from tests.hosts.test_ssh_faults import Scene, created, given_back, moments, power_cycle, request, until

pytestmark = [pytest.mark.hosts, pytest.mark.slow]
BOOTS = "cat /proc/sys/kernel/random/boot_id"


@pytest.fixture(scope="module")
def pool(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshpools.Pool]:
    made = sshpools.Pool(lab, tmp_path_factory.mktemp("keys"), ["f1"])
    yield made
    made.remove()


@asynccontextmanager
async def rebooting(pool: sshpools.Pool) -> AsyncIterator[Scene]:
    """A scene whose tests may set power commands."""
    made = Scene(pool)
    await made.up()
    yield made
    power.use({})
    await made.down()


@pytest_asyncio.fixture
async def scene(pool: sshpools.Pool) -> AsyncIterator[Scene]:
    async with rebooting(pool) as made:
        yield made


async def joined(scene: Scene, controller: SSHProvider) -> tuple[Host, Guest]:
    host = await created(controller, request())
    guest = scene.pool.guests[host.name]
    await asyncio.to_thread(until, guest, "test -e /root/joined")
    return host, guest


async def end(scene: Scene, host: Host) -> None:
    await given_back(scene.controller(), host)
    scene.pool.guests[host.name].execute("rm -f /root/begun /root/joined")


async def until_rebooted(scene: Scene, controller: SSHProvider, host: Host, attempt: str) -> Guest:
    """As the controllers call: again until it is seen. A host of the lab has to be started again by somebody."""
    guest, deadline = scene.pool.guests[host.name], asyncio.get_running_loop().time() + 600
    while True:
        if not guest.is_running():
            await asyncio.to_thread(sshpools.power_on, scene.pool, guest)
        found = await controller.get(host.machine_uid)
        assert found is not None, "it stays its Machine's"
        assert found.id == host.id
        if found.rebooted == attempt:
            return guest
        assert asyncio.get_running_loop().time() < deadline, "it was not rebooted"
        await controller.reboot(host, attempt)
        await asyncio.sleep(0.2)


async def test_a_host_that_answers_reboots_once_and_stays_its_machines(scene: Scene) -> None:
    controller = scene.controller()
    host, guest = await joined(scene, controller)
    before = guest.execute(BOOTS).stdout
    await controller.reboot(host, "one")
    await until_rebooted(scene, controller, host, "one")
    once = guest.execute(BOOTS).stdout
    assert once != before
    assert [claim["machine_uid"] for claim in [sshpools.claim(guest)] if claim] == [host.machine_uid]
    for each in (controller, scene.controller()):
        await each.reboot(host, "one")
    await scene.controller().list()
    assert guest.is_running()
    assert guest.execute(BOOTS).stdout == once
    await end(scene, host)


async def test_one_that_hangs_is_switched_off_and_on_by_the_administrators_command(
    scene: Scene, tmp_path: Path
) -> None:
    controller = scene.controller()
    host, guest = await joined(scene, controller)
    await controller.list()
    asked = tmp_path / "asked"
    argv = ("/bin/sh", "-c", f'echo "$1" >> {shlex.quote(str(asked))}', "bmc", "{address}")
    power.use({"bmc": power.PowerCommand("bmc", argv, frozenset({"default"}))})
    scene.publish(f1={"power": {"command": "bmc", "address": guest.address}})
    guest.execute("systemctl stop ssh.socket ssh; pkill sshd; true")
    for _ in range(2):
        await controller.reboot(host, "one")
    assert asked.read_text().split() == [guest.address]
    await asyncio.to_thread(power_cycle, scene.pool, guest)
    await until_rebooted(scene, controller, host, "one")
    assert asked.read_text().split() == [guest.address]
    await end(scene, host)


@pytest.mark.parametrize("count", [2, pytest.param(12, marks=pytest.mark.hosts_long)])
async def test_a_controller_that_is_killed_at_any_step_of_a_reboot_leaves_one_reboot(
    scene: Scene, count: int, tmp_path: Path
) -> None:
    """The status of the pool stays, as in an API server; whatever was sent is sent again by the next one."""
    controller = scene.controller()
    host, guest = await joined(scene, controller)
    proxy = scene.proxies["f1"]
    proxy.arm(-1)
    await scene.controller().reboot(host, "to count")
    await until_rebooted(scene, controller, host, "to count")
    for number, after in enumerate(moments(proxy.sent, count + 1)[1:]):
        attempt, before = f"attempt-{number}", guest.execute(BOOTS).stdout
        told: dict[str, Any] = {"pool": scene.objects.pool, "key": str(scene.pool.key), "uid": host.machine_uid}
        (tmp_path / "scene.json").write_text(json.dumps({**told, "reboot": [host.id, host.name, attempt]}))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.hosts.onecontroller", str(tmp_path / "scene.json"),
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip

        async def kill(victim: asyncio.subprocess.Process = process) -> None:
            victim.send_signal(signal.SIGKILL)

        proxy.arm(after, kill)
        out, _ = await process.communicate()
        proxy.arm(-1)
        for line in out.decode().splitlines():  # what it had written into the API server
            scene.objects.pool = json.loads(line)
        await until_rebooted(scene, controller, host, attempt)
        once = guest.execute(BOOTS).stdout
        assert once != before
        await scene.controller().reboot(host, attempt)
        assert guest.execute(BOOTS).stdout == once
    await end(scene, host)
