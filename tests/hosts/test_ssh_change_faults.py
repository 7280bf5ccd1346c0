"""Faults at every step of a change in place, on hosts with real sshd and systemd: it is done once, to its end, on the
host that the Machine has.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hack.hosts.guests import Guest
from hack.hosts.lab import Lab
from providers.base.contract import BOOTSTRAP_DATA, Host, HostRequest, KubeletUpgrade, Updated, Versions
from providers.base.errors import ErrorClass, ProviderError
from providers.ssh.provider import SSHProvider
from tests.hosts import sshpools
from tests.hosts.test_ssh_faults import (
    MANY,
    Scene,
    created,
    given_back,
    judge,
    moments,
    power_cycle,
    request,
    until,
)

pytestmark = [pytest.mark.hosts, pytest.mark.slow]
STEPS = b"#!/bin/sh\nmkdir -p /etc/kubernetes\ntouch /etc/kubernetes/kubelet.conf\ntouch /root/joined\n"
CHANGE = "#!/bin/sh\necho begun >> /root/changes\nsync\necho {version} > /root/version\n"
FIXED = {"fixed_hash": "fixed", "kept_hash": "kept"}


@pytest.fixture(scope="module")
def pool(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshpools.Pool]:
    made = sshpools.Pool(lab, tmp_path_factory.mktemp("keys"), ["f1", "f2"])
    yield made
    made.remove()


@pytest_asyncio.fixture
async def scene(pool: sshpools.Pool) -> AsyncIterator[Scene]:
    made = Scene(pool)
    made.secrets.secrets["steps"] = {BOOTSTRAP_DATA: STEPS}
    await made.up()
    yield made
    await made.down()


async def joined(scene: Scene, controller: SSHProvider) -> tuple[HostRequest, Host, Guest]:
    wanted = replace(request(), **FIXED)
    host = await created(controller, wanted)
    guest = scene.pool.guests[host.name]
    await asyncio.to_thread(until, guest, "test -e /root/joined -a ! -e /var/lib/nodewright/ssh/join.sh")
    return wanted, host, guest


def other(wanted: HostRequest, number: int) -> HostRequest:
    """The same Machine with another version of the kubelet."""
    script = CHANGE.format(version=number)
    versions = Versions(kubelet=f"1.36.{number}")
    return replace(wanted, spec_hash=f"hash-{number}", versions=versions, upgrade=KubeletUpgrade(script, ""))


async def changed(controller: SSHProvider, wanted: HostRequest, seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            host = await controller.get(wanted.identity.machine_uid)
            assert host is not None, "it stays its Machine's"
            if isinstance(await controller.update(wanted, host, drained=True), Updated):
                return
        except ProviderError as error:
            judge(error, deadline)
        assert time.monotonic() < deadline, "the change did not come to its end"
        await asyncio.sleep(0.1)


async def is_as_asked(scene: Scene, host: Host, wanted: HostRequest, number: int, *, times: int = 1) -> None:
    """On the same host, and the steps were begun ``times`` at most."""
    guest = scene.pool.guests[host.name]
    assert guest.execute("cat /root/version").stdout.strip() == str(number)
    assert 1 <= int(guest.execute("wc -l < /root/changes").stdout) <= times, "the steps were begun too often"
    guest.execute("rm /root/changes")
    assert scene.claims() == {host.name: wanted.identity.machine_uid}
    claim = sshpools.claim(guest)
    assert claim is not None
    assert (claim["spec_hash"], claim["kubelet"]) == (wanted.spec_hash, wanted.versions.kubelet)
    assert f"{host.name}/{claim['id']}" == host.id


async def bytes_of_a_change(scene: Scene, host: Host, wanted: HostRequest) -> int:
    """From the login to the last word."""
    proxy = scene.proxies[host.name]
    proxy.arm(-1)
    await changed(scene.controller(), other(wanted, 0))
    await is_as_asked(scene, host, other(wanted, 0), 0)
    return proxy.sent


async def end(scene: Scene, host: Host) -> None:
    await given_back(scene.controller(), host)
    guest = scene.pool.guests[host.name]
    guest.execute("rm -rf /root/joined /root/version /root/changes /etc/kubernetes")


@pytest.mark.parametrize("count", [3, pytest.param(MANY, marks=pytest.mark.hosts_long)])
async def test_a_connection_that_is_cut_at_any_step_of_a_change_changes_it_once(scene: Scene, count: int) -> None:
    wanted, host, _ = await joined(scene, scene.controller())
    for number, after in enumerate(moments(await bytes_of_a_change(scene, host, wanted), count), start=1):
        scene.proxies[host.name].arm(after)
        await changed(scene.controller(), other(wanted, number))
        await is_as_asked(scene, host, other(wanted, number), number)
    await end(scene, host)


@pytest.mark.parametrize("count", [2, pytest.param(8, marks=pytest.mark.hosts_long)])
async def test_a_host_that_loses_power_at_any_step_of_a_change_goes_on_with_it(scene: Scene, count: int) -> None:
    wanted, host, guest = await joined(scene, scene.controller())
    for number, after in enumerate(moments(await bytes_of_a_change(scene, host, wanted), count + 1)[1:], start=1):
        scene.proxies[host.name].arm(after, lambda: asyncio.to_thread(power_cycle, scene.pool, guest))
        await changed(scene.controller(), other(wanted, number))
        await is_as_asked(scene, host, other(wanted, number), number, times=2)
    await end(scene, host)


@pytest.mark.parametrize("count", [2, pytest.param(12, marks=pytest.mark.hosts_long)])
async def test_a_controller_that_is_killed_at_any_step_of_a_change_leaves_it_to_the_next_one(
    scene: Scene, count: int, tmp_path: Path
) -> None:
    wanted, host, _ = await joined(scene, scene.controller())
    for number, after in enumerate(moments(await bytes_of_a_change(scene, host, wanted), count + 1)[1:], start=1):
        asked = other(wanted, number)
        change: dict[str, Any] = {"spec_hash": asked.spec_hash, **FIXED}
        told = {"pool": scene.objects.pool, "key": str(scene.pool.key), "uid": asked.identity.machine_uid}
        (tmp_path / "scene.json").write_text(json.dumps({**told, "change": change, "script": asked.upgrade.script}))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.hosts.onecontroller", str(tmp_path / "scene.json"),
            stdout=asyncio.subprocess.DEVNULL,
        )  # fmt: skip

        async def kill(victim: asyncio.subprocess.Process = process) -> None:
            victim.send_signal(signal.SIGKILL)

        scene.proxies[host.name].arm(after, kill)
        await process.wait()
        scene.proxies[host.name].arm(-1)
        await changed(scene.controller(), asked)
        guest = scene.pool.guests[host.name]
        assert guest.execute("cat /root/version").stdout.strip() == str(number)
        assert guest.execute("wc -l < /root/changes").stdout.strip() == "1", "the steps were begun twice"
        guest.execute("rm /root/changes")
        assert scene.claims() == {host.name: asked.identity.machine_uid}
    await end(scene, host)


async def test_a_disk_that_is_full_when_a_change_begins_is_told_and_the_host_runs_on_as_it_is(scene: Scene) -> None:
    controller = scene.controller()
    wanted, host, guest = await joined(scene, controller)
    full = (
        "cp -a /var/lib/nodewright /root/kept && mount -t tmpfs -o size=128k t /var/lib/nodewright && "
        "cp -a /root/kept/. /var/lib/nodewright && { dd if=/dev/zero of=/var/lib/nodewright/filler bs=1k; true; }"
    )
    assert guest.execute(full).returncode == 0
    asked = replace(other(wanted, 1), upgrade=KubeletUpgrade(CHANGE.format(version=1) + "#" * 20_000, ""))
    try:
        with pytest.raises(ProviderError, match=r"can't do step change.*can't be written to: [0-9]+ KiB") as refused:
            await controller.update(asked, host, drained=True)
        assert refused.value.error_class is ErrorClass.INTERNAL
        assert host.name in refused.value.message
        assert guest.execute("test -e /root/changes").returncode != 0
        assert scene.claims() == {host.name: wanted.identity.machine_uid}
        guest.execute("rm /var/lib/nodewright/filler")
        await changed(controller, asked)
        await is_as_asked(scene, host, asked, 1)
        await end(scene, host)
    finally:
        guest.execute("umount /var/lib/nodewright; rm -rf /root/kept /var/lib/nodewright/ssh/claim")
