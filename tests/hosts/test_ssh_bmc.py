"""A host that hangs is switched off and on by ipmitool and a BMC that speaks IPMI 2.0 over the network."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from hack.hosts import parts
from hack.hosts.guests import Guest
from hack.hosts.lab import Lab
from providers.base import power
from providers.base.contract import Host
from providers.base.errors import ProviderError
from providers.ssh.provider import SSHProvider
from tests.hosts import sshpools
from tests.hosts.bmc import PASSWORD, USER, Bmc
from tests.hosts.test_ssh_faults import Scene
from tests.hosts.test_ssh_reboot import BOOTS, end, joined, rebooting
from tests.realplane import lacking

pytestmark = [pytest.mark.hosts, pytest.mark.slow]


@pytest.fixture(scope="module")
def pool(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshpools.Pool]:
    if why := parts.no_bmc():
        lacking(why)
    made = sshpools.Pool(lab, tmp_path_factory.mktemp("keys"), ["f1"])
    yield made
    made.remove()


@pytest_asyncio.fixture
async def scene(pool: sshpools.Pool) -> AsyncIterator[Scene]:
    async with rebooting(pool) as made:
        yield made


@pytest.fixture
def bmc(pool: sshpools.Pool, tmp_path: Path) -> Iterator[Bmc]:
    with Bmc(tmp_path / "bmc", pool.lab, pool.guests["f1"]) as made:
        yield made


async def hanging(scene: Scene, bmc: Bmc, password: str) -> tuple[SSHProvider, Host, Guest]:
    """A Machine's host that answers no more, with a BMC; the controller knows its boot id."""
    controller = scene.controller()
    host, guest = await joined(scene, controller)
    await controller.list()
    command = power.PowerCommand("ipmi", (*bmc.command(), "cycle"), frozenset({"default"}), power.LONGEST)
    power.use({"ipmi": command})
    scene.secrets.secrets["f1-bmc"] = {"password": password.encode()}
    bmc_of_f1 = {"command": "ipmi", "address": bmc.address, "user": USER, "secretName": "f1-bmc"}
    scene.publish(f1={"power": bmc_of_f1})
    guest.execute("systemctl stop ssh.socket ssh; pkill sshd; true")
    return controller, host, guest


async def until_rebooted(controller: SSHProvider, host: Host, attempt: str) -> None:
    deadline = asyncio.get_running_loop().time() + 600
    while True:
        found = await controller.get(host.machine_uid)
        if found is not None and found.rebooted == attempt:
            return
        assert asyncio.get_running_loop().time() < deadline, "it was not rebooted"
        with contextlib.suppress(ProviderError):  # a session with the BMC needs processors on both sides
            await controller.reboot(host, attempt)
        await asyncio.sleep(0.5)


async def test_a_host_that_hangs_is_power_cycled_once_and_stays_its_machines(scene: Scene, bmc: Bmc) -> None:
    controller, host, guest = await hanging(scene, bmc, PASSWORD)
    before = guest.execute(BOOTS).stdout
    await until_rebooted(controller, host, "one")
    assert bmc.asked() == ["set power 0", "set power 1"]
    assert guest.execute(BOOTS).stdout != before
    assert [claim["machine_uid"] for claim in [sshpools.claim(guest)] if claim] == [host.machine_uid]
    await end(scene, host)


async def test_a_bmc_that_refuses_the_password_is_quoted_without_it(scene: Scene, bmc: Bmc) -> None:
    controller, host, guest = await hanging(scene, bmc, "another secret")
    with pytest.raises(ProviderError, match="Unable to establish IPMI v2 / RMCP\\+ session") as error:
        await controller.reboot(host, "one")
    assert "another" not in f"{error.value} {scene.objects.pool['status']}"
    assert bmc.asked() == []
    guest.execute("systemctl start ssh")
    await end(scene, host)
