"""Faults at every step, on hosts with real sshd and systemd: one Machine never has two hosts, and what went wrong is
told with host and step.

A sample of the moments runs with `make e2e-hosts`, many of them with `make e2e-hosts-long`.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hack.hosts.guests import Guest
from hack.hosts.lab import Lab
from hack.hosts.parts import LabError
from providers.base.contract import BOOTSTRAP_DATA, BootstrapRef, Host, HostIdentity, HostRequest
from providers.base.errors import ErrorClass, ProviderError
from providers.ssh.provider import SSHProvider
from tests.hosts import sshpools
from tests.hosts.cuts import Proxy
from tests.providers.sshworld import HeldObjects, HeldSecrets

pytestmark = [pytest.mark.hosts, pytest.mark.slow]

CONFIG: dict[str, Any] = {
    "apiVersion": "ssh.nodewright.dev/v1alpha1",
    "kind": "SSHMachineConfig",
    "pool": sshpools.POOL,
}
STEPS = b"""\
#!/bin/sh
echo begun >> /root/begun
touch /root/joined
"""
HOME = "/var/lib/nodewright/ssh"
SAMPLE, MANY = 4, 24
"""Moments of a life (claimed, begun, given back) at which something happens."""


@pytest.fixture(scope="module")
def pool(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshpools.Pool]:
    made = sshpools.Pool(lab, tmp_path_factory.mktemp("keys"), ["f1", "f2", "f3"])
    yield made
    made.remove()


class Scene:
    """The pool behind proxies, as the API server holds it, and controllers that know nothing of each other."""

    def __init__(self, pool: sshpools.Pool) -> None:
        self.pool = pool
        self.proxies = {name: Proxy(guest.address) for name, guest in pool.guests.items()}
        self.objects = HeldObjects()
        key = {"ssh-privatekey": pool.key.read_bytes()}
        self.secrets = HeldSecrets({"steps": {BOOTSTRAP_DATA: STEPS}, sshpools.SECRET: key})
        self._opened: list[SSHProvider] = []

    async def up(self) -> None:
        for proxy in self.proxies.values():
            await proxy.up()
        self.publish()

    def publish(self, **changes: Any) -> None:
        """The pool, without a status: as after a restored backup. ``changes``: other values of its entries, by host."""
        _, made = self.pool.objects()
        for entry in made["spec"]["hosts"]:
            behind = {"address": "127.0.0.1", "port": self.proxies[entry["name"]].port}
            entry |= {**behind, **changes.get(entry["name"], {})}
        self.objects.pool = {**made, "metadata": {**made["metadata"], "resourceVersion": "1"}}

    def controller(self) -> SSHProvider:
        made = SSHProvider(sshpools.POOL, self.secrets, self.objects)
        self._opened.append(made)
        return made

    async def down(self) -> None:
        for each in self._opened:
            await each.close()
        for proxy in self.proxies.values():
            await proxy.down()

    def claims(self) -> dict[str, str]:
        """Host → UID of the Machine whose claim lies there."""
        found = {name: sshpools.claim(guest) for name, guest in self.pool.guests.items()}
        return {name: claim["machine_uid"] for name, claim in found.items() if claim}

    def reason(self, name: str) -> str:
        return str(self.objects.pool["status"]["hosts"][name].get("reason", ""))


@pytest_asyncio.fixture
async def scene(pool: sshpools.Pool) -> AsyncIterator[Scene]:
    made = Scene(pool)
    await made.up()
    yield made
    await made.down()
    for guest in pool.guests.values():  # whatever a test that failed has left
        guest.execute(
            f"systemctl stop 'nodewright-*'; rm -rf {HOME} /etc/systemd/system/nodewright-* /root/begun /root/joined"
        )


def request() -> HostRequest:
    uid = str(uuid.uuid4())
    identity = HostIdentity(uid, "default", f"m-{uid[:4]}", "", "here")
    return HostRequest(identity, CONFIG, "hash", bootstrap=BootstrapRef("steps", "script"))


async def created(controller: SSHProvider, wanted: HostRequest, seconds: float = 300.0) -> Host:
    """As the controllers call: again after an error that passes."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return await controller.create(wanted)
        except ProviderError as error:
            judge(error, deadline)
        await asyncio.sleep(0.2)


async def given_back(controller: SSHProvider, host: Host, seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            if all(each.machine_uid != host.machine_uid for each in await controller.list()):
                return
            await controller.delete(host)
        except ProviderError as error:
            judge(error, deadline)
        assert time.monotonic() < deadline, f"{host.name} was not given back"
        await asyncio.sleep(0.1)


def judge(error: ProviderError, deadline: float) -> None:
    """It passes, there is time left, and it names host and step; a conflict names what it is with.

    Hosts that all lost power before one was claimed are none to have, until they are back.
    """
    assert time.monotonic() < deadline, error.message
    if error.error_class is ErrorClass.STOCK_OUT:
        assert error.message.endswith("has no free host for it: f1 Unreachable, f2 Unreachable, f3 Unreachable")
        return
    assert error.error_class in {ErrorClass.CONFLICT, ErrorClass.TIMEOUT, ErrorClass.INTERNAL}, error.message
    named = "host f" in error.message and "step" in error.message
    assert named or error.error_class is ErrorClass.CONFLICT, error.message


def until(guest: Guest, command: str, seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while guest.execute(command).returncode != 0:
        assert time.monotonic() < deadline, f"{guest.name}: {command} did not come true"
        time.sleep(0.1)


async def a_life(scene: Scene, controller: SSHProvider, wanted: HostRequest, *, lives: int = 1) -> None:
    """Claimed, its steps run once to their end, given back with nothing left; never two hosts for one Machine.

    ``lives``: 2 if the Machine may have been given a host, and have given it back, before.
    """
    host = await created(controller, wanted)
    guest = scene.pool.guests[host.name]
    assert scene.claims() == {host.name: wanted.identity.machine_uid}
    await asyncio.to_thread(until, guest, "test -e /root/joined")
    await given_back(controller, host)
    assert scene.claims() == {}
    left = f"ls {HOME} | grep -v '^lock$'; ls /etc/systemd/system/nodewright-* /etc/systemd/system/*/nodewright-*"
    await asyncio.to_thread(until, guest, f'test -z "$({left} 2>/dev/null)"')
    assert int(guest.execute("wc -l < /root/begun").stdout) <= lives, "the steps were begun twice"
    for guest in scene.pool.guests.values():
        guest.execute("rm -f /root/begun /root/joined")


async def bytes_of_a_life(scene: Scene) -> int:
    for proxy in scene.proxies.values():
        proxy.arm(-1)
    controller = scene.controller()
    await a_life(scene, controller, request())
    return max(proxy.sent for proxy in scene.proxies.values())


def moments(total: int, count: int) -> list[int]:
    """``count`` of them, from the handshake to the last command: 0, 25, 50 and 75 of 100 by 4."""
    return [total * number // count for number in range(count)]


@pytest.mark.parametrize("count", [SAMPLE, pytest.param(MANY, marks=pytest.mark.hosts_long)])
async def test_a_connection_that_is_cut_at_any_step_costs_no_second_host(scene: Scene, count: int) -> None:
    for after in moments(await bytes_of_a_life(scene), count):
        for proxy in scene.proxies.values():
            proxy.arm(after)
        scene.publish()
        await a_life(scene, scene.controller(), request())


@pytest.mark.parametrize("count", [2, pytest.param(MANY, marks=pytest.mark.hosts_long)])
async def test_a_host_that_loses_power_at_any_step_is_that_machines_when_it_is_back(scene: Scene, count: int) -> None:
    for after in moments(await bytes_of_a_life(scene), count + 1)[1:]:
        scene.publish()
        for name, proxy in scene.proxies.items():
            proxy.arm(after, lambda guest=scene.pool.guests[name]: asyncio.to_thread(power_cycle, scene.pool, guest))
        await a_life(scene, scene.controller(), request())


def power_cycle(pool: sshpools.Pool, guest: Guest) -> None:
    """Off at once, and on again."""
    guest.stop(patience=0)
    guest.boot(pool.lab.payload)
    guest.wait_booted()
    sshpools.wait_for_sshd(guest)


@pytest.mark.parametrize("count", [2, pytest.param(MANY, marks=pytest.mark.hosts_long)])
async def test_a_controller_that_is_killed_at_any_step_leaves_what_the_next_one_goes_on_with(
    scene: Scene, count: int, tmp_path: Path
) -> None:
    """SIGKILL, and the pool's status is lost as well: the claim on the host is what counts."""
    total = await bytes_of_a_life(scene)
    for after in moments(total, count + 1)[1:]:
        scene.publish()
        wanted = request()
        (tmp_path / "scene.json").write_text(
            json.dumps({"pool": scene.objects.pool, "key": str(scene.pool.key), "uid": wanted.identity.machine_uid})
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.hosts.onecontroller", str(tmp_path / "scene.json")
        )

        async def kill(victim: asyncio.subprocess.Process = process) -> None:
            victim.send_signal(signal.SIGKILL)

        for proxy in scene.proxies.values():
            proxy.arm(after, kill)
        await process.wait()
        for proxy in scene.proxies.values():
            proxy.arm(-1)
        await a_life(scene, scene.controller(), wanted, lives=2)


async def test_two_controllers_at_once_give_each_machine_one_host(scene: Scene) -> None:
    wanted = [request() for _ in range(2)]
    controllers = [scene.controller(), scene.controller()]
    hosts = await asyncio.gather(*(created(each, one) for one in wanted for each in controllers))
    assert sorted(scene.claims().values()) == sorted(one.identity.machine_uid for one in wanted)
    assert len({host.id for host in hosts}) == 2
    for host in hosts[::2]:
        guest = scene.pool.guests[host.name]
        await asyncio.to_thread(until, guest, "test -e /root/joined")
        assert guest.execute("wc -l < /root/begun").stdout.strip() == "1", "the steps were begun twice"
        await asyncio.gather(*(given_back(each, host) for each in controllers))
        guest.execute("rm -f /root/begun /root/joined")
    assert scene.claims() == {}


async def test_a_full_disk_is_told_and_the_host_is_passed_over_or_waited_for(scene: Scene) -> None:
    first = scene.pool.guests["f1"]
    full = "mkdir -p /var/lib/nodewright && mount -t tmpfs -o size=64k t /var/lib/nodewright && cd /var/lib/nodewright"
    assert first.execute(f"{full} && {{ dd if=/dev/zero of=filler bs=1k count=64; true; }}").returncode == 0
    controller = scene.controller()
    other = await created(controller, request())
    assert other.name != "f1"
    await created(controller, request())
    told = r"host f1 .* can't do step claim.*can't be written to: [0-9]+ KiB are free"
    with pytest.raises(ProviderError, match=told):
        await controller.create(request())
    for host in await controller.list():
        await asyncio.to_thread(until, scene.pool.guests[host.name], "test -e /root/joined")
        await given_back(controller, host)
        scene.pool.guests[host.name].execute("rm -f /root/begun /root/joined")
    first.execute("rm /var/lib/nodewright/filler; dd if=/dev/zero of=/var/lib/nodewright/filler bs=1k count=48")
    wanted = request()
    scene.secrets.secrets["steps"] = {BOOTSTRAP_DATA: STEPS + b"#" * 40_000}
    with pytest.raises(
        ProviderError, match=r"host f1 .* can't do step start.*can't be written to: [0-9]+ KiB are free"
    ):
        await controller.create(wanted)
    assert scene.claims() == {"f1": wanted.identity.machine_uid}
    first.execute("rm /var/lib/nodewright/filler; mount -o remount,size=1m /var/lib/nodewright")
    await a_life(scene, controller, wanted)
    first.execute("umount /var/lib/nodewright")


async def test_another_host_key_no_sudo_and_a_wrong_clock_are_told_and_nothing_is_done_there(scene: Scene) -> None:
    new_key, ops, late = (scene.pool.guests[name] for name in ("f1", "f2", "f3"))
    new_key.execute("cp -a /etc/ssh /etc/ssh.kept; rm /etc/ssh/ssh_host_*; ssh-keygen -A; systemctl restart ssh")
    ops.execute(
        "useradd -m -s /bin/sh ops; passwd -d ops; mkdir -p /home/ops/.ssh; cp /root/.ssh/authorized_keys "
        "/home/ops/.ssh/; chown -R ops /home/ops/.ssh; echo 'ops ALL=(ALL) ALL' > /etc/sudoers.d/ops;"
        "echo 'ops:secret' | chpasswd"
    )
    # Guests share the clock of this machine, which is not to be changed: the answer of the program is.
    (late.root / "usr/local/bin/date").write_text('#!/bin/sh\nexec /bin/date -d "3 hours ago" "$@"\n')
    (late.root / "usr/local/bin/date").chmod(0o755)
    scene.publish(f2={"user": "ops"}, f1={"hostKeys": [_former(new_key)]})
    try:
        controller = scene.controller()
        with pytest.raises(ProviderError) as caught:
            await controller.create(request())
        assert caught.value.error_class is ErrorClass.STOCK_OUT
        for _ in range(2):  # nor is the key taken over at the second look
            await controller.list()
            await until_said(scene, controller, "f1", "shows a host key that is not among its hostKeys")
            await until_said(scene, controller, "f2", "may not do `sudo -n /bin/sh` without a password")
            await until_said(scene, controller, "f3", "its clock is more than an hour behind")
        assert scene.claims() == {}
    finally:
        new_key.execute("rm -rf /etc/ssh; mv /etc/ssh.kept /etc/ssh; systemctl restart ssh")
        ops.execute("rm /etc/sudoers.d/ops")
        late.execute("rm /usr/local/bin/date")
        await asyncio.to_thread(sshpools.wait_for_sshd, new_key)


async def until_said(scene: Scene, controller: SSHProvider, host: str, words: str) -> None:
    """Look again: a host that gets no processor for some seconds is only said not to answer."""
    deadline = time.monotonic() + 300
    while words not in scene.reason(host):
        assert time.monotonic() < deadline, scene.reason(host)
        await controller.list()


def _former(guest: Guest) -> str:
    words = (guest.root / "etc/ssh.kept/ssh_host_ed25519_key.pub").read_text().split()
    return " ".join(words[:2])


async def test_a_host_behind_another_one_is_claimed_joined_and_given_back(scene: Scene) -> None:
    """``f1`` opens the way to ``f2``, whose sshd takes nobody else's connections."""
    jump, inner = scene.pool.guests["f1"], scene.pool.guests["f2"]
    shut = f"INPUT -p tcp --dport 22 ! -s {jump.address} -j REJECT"
    inner.execute(f"iptables -I {shut}")
    entry = scene.pool.entry("f1")
    through = {"address": entry["address"], "user": "root", "hostKeys": entry["hostKeys"]}
    try:
        scene.publish(f1={}, f2={"address": inner.address, "port": 22, "proxyJump": through})
        hosts = scene.objects.pool["spec"]["hosts"]
        scene.objects.pool["spec"]["hosts"] = [each for each in hosts if each["name"] == "f2"]
        controller = scene.controller()
        await a_life(scene, controller, request())
        await asyncio.to_thread(jump.execute, "systemctl stop ssh.socket ssh; pkill sshd")
        with pytest.raises(ProviderError, match="f2 Unreachable"):
            await controller.create(request())
        await until_said(scene, controller, "f2", f"its proxyJump {jump.address}:22")
    finally:
        inner.execute(f"iptables -D {shut}")
        jump.execute("systemctl start ssh")
        await asyncio.to_thread(sshpools.wait_for_sshd, jump)


def test_a_lab_host_that_does_not_come_up_is_told_after_its_time(pool: sshpools.Pool) -> None:
    """``is-system-running --wait`` waits for ever where a job of systemd hangs."""
    guest = pool.guests["f3"]
    with pytest.raises(LabError, match=r"f3: sleep 600 did not end in 1 s"):
        guest.execute("sleep 600", 0.6)
    with pytest.raises(LabError, match=r"nobody did not come up in 0 s: its systemd said nothing last"):
        replace(guest, name="nobody", number=199).wait_booted(0.3)
