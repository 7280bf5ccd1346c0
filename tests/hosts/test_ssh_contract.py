"""The SSH provider keeps the contract with hosts that have real sshd and systemd, and cleans them for real."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, ClassVar

import pytest
import pytest_asyncio

from hack.hosts.guests import Guest
from hack.hosts.lab import Lab
from providers.base.contract import BOOTSTRAP_DATA, BootstrapRef, Host, HostIdentity, HostRequest, Provider
from providers.base.contract_tests import BOOTSTRAP_SECRETS, ProviderContract
from providers.ssh import registration
from providers.ssh.provider import SSHProvider
from tests.hosts import sshpools
from tests.providers.sshworld import HeldObjects, HeldSecrets

pytestmark = [pytest.mark.hosts, pytest.mark.slow]

CONFIG: dict[str, Any] = {
    "apiVersion": "ssh.nodewright.dev/v1alpha1",
    "kind": "SSHMachineConfig",
    "pool": sshpools.POOL,
}
SLOW = b"""\
#!/bin/sh
echo begun >> /root/begun
while [ ! -e /root/go-on ]; do sleep 0.1; done
echo joined > /root/joined
"""
SCRIPTS = {**BOOTSTRAP_SECRETS, "slow": {BOOTSTRAP_DATA: SLOW}}


@pytest.fixture(scope="module")
def pool(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshpools.Pool]:
    made = sshpools.Pool(lab, tmp_path_factory.mktemp("keys"), [f"h{number}" for number in range(1, 7)])
    yield made
    made.remove()


def held(pool: sshpools.Pool) -> tuple[HeldSecrets, HeldObjects]:
    """What the API server would hold."""
    _, made = pool.objects()
    objects = HeldObjects()
    objects.pool = {**made, "metadata": {**made["metadata"], "resourceVersion": "1"}}
    return HeldSecrets({**SCRIPTS, sshpools.SECRET: {"ssh-privatekey": pool.key.read_bytes()}}), objects


class TestSSHOnLabHosts(ProviderContract):
    registration = registration
    valid_config: ClassVar = CONFIG
    changed_config: ClassVar = {**CONFIG, "release": "Leave"}
    impossible_config: ClassVar = {**CONFIG, "hostSelector": {"rack": "nowhere"}}
    patience = 300

    @pytest_asyncio.fixture(autouse=True)
    async def _hosts(self, pool: sshpools.Pool) -> AsyncIterator[None]:
        self.pool, self.held = pool, held(pool)
        self.opened: list[SSHProvider] = []
        yield
        for provider in self.opened:
            await provider.close()

    async def open(self) -> Provider:
        provider = SSHProvider(sshpools.POOL, *self.held)
        self.opened.append(provider)
        return provider

    async def let_time_pass(self) -> None:
        """A host of the lab that reboots ends, and somebody has to start it again."""
        for guest in self.pool.guests.values():
            if not guest.is_running():
                await asyncio.to_thread(sshpools.power_on, self.pool, guest)
        await asyncio.sleep(0.1)

    async def speaks_at(self, host: Host) -> tuple[int, bytes]:
        return 22, b"SSH-2.0"

    async def given_to(self, host: Host) -> bytes | None:
        return (self.pool.guests[host.name].root / "var/lib/nodewright/ssh/join.sh").read_bytes()


@pytest_asyncio.fixture
async def provider(pool: sshpools.Pool) -> AsyncIterator[SSHProvider]:
    made = SSHProvider(sshpools.POOL, *held(pool))
    yield made
    await made.close()


def until(guest: Guest, command: str, seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while guest.execute(command).returncode != 0:
        assert time.monotonic() < deadline, f"{guest.name}: {command} did not come true"
        time.sleep(0.1)


async def until_gone(provider: SSHProvider, host: Host) -> None:
    deadline = time.monotonic() + 300
    while any(each.id == host.id for each in await provider.list()):
        assert time.monotonic() < deadline, "the host was not given back"
        await asyncio.sleep(0.1)


def request() -> HostRequest:
    identity = HostIdentity("5b1d2f0e-0000-4000-8000-000000000001", "default", "m", "", "here")
    return HostRequest(identity, CONFIG, "hash", bootstrap=BootstrapRef("slow", "script"))


async def test_steps_go_on_without_a_connection_and_after_a_reboot(pool: sshpools.Pool, provider: SSHProvider) -> None:
    host = await provider.create(request())
    guest = pool.guests[host.name]
    until(guest, "test -e /root/begun")
    await provider.close()  # as a controller that is killed
    await asyncio.to_thread(guest.stop)
    (listed,) = await provider.list()
    assert listed.id == host.id, "a host that does not answer is nobody's"
    await asyncio.to_thread(guest.boot, pool.lab.payload)
    until(guest, "test $(wc -l < /root/begun) = 2")
    guest.execute("touch /root/go-on")
    until(guest, "test -e /root/joined && ! systemctl is-active -q nodewright-bootstrap")
    assert guest.execute("ls /var/lib/nodewright/ssh/join.sh").returncode != 0, "the token is kept"
    await asyncio.to_thread(sshpools.wait_for_sshd, guest)
    await provider.delete(host)
    await until_gone(provider, host)
    guest.execute("rm -f /root/begun /root/go-on /root/joined")


async def test_steps_that_still_run_end_before_the_host_is_given_back(
    pool: sshpools.Pool, provider: SSHProvider
) -> None:
    host = await provider.create(request())
    guest = pool.guests[host.name]
    until(guest, "test -e /root/begun")
    await provider.delete(host)
    await until_gone(provider, host)
    assert guest.execute("pgrep -f '[j]oin.sh'").stdout == ""
    guest.execute("rm -f /root/begun")


async def test_a_reset_takes_off_what_is_there_and_keeps_what_was(pool: sshpools.Pool, provider: SSHProvider) -> None:
    host = await provider.create(request())
    guest = pool.guests[host.name]
    before = guest.execute("iptables-save | grep -c OTHER; ls /etc/cni/net.d").stdout
    guest.execute(
        "mkdir -p /var/lib/kubelet/pods/x/volumes && mount -t tmpfs t /var/lib/kubelet/pods/x/volumes;"
        "echo secret > /var/lib/kubelet/pods/x/volumes/token; mkdir -p /etc/kubernetes /var/lib/cni;"
        "touch /etc/kubernetes/kubelet.conf /etc/cni/net.d/99-late.conf;"
        "iptables -N KUBE-SERVICES; iptables -A INPUT -j KUBE-SERVICES; iptables -N OTHER;"
        "ip link add cni0 type bridge"
    )
    await provider.delete(host)
    await until_gone(provider, host)
    left = guest.execute(
        "find /var/lib/kubelet -mindepth 1; ls -d /etc/kubernetes /var/lib/cni /sys/class/net/cni0 2>/dev/null;"
        "iptables-save | grep KUBE-; cat /var/lib/nodewright/ssh/quarantine 2>/dev/null"
    ).stdout
    assert left == ""
    assert guest.execute("iptables-save | grep -c '^:OTHER'").stdout.strip() == "1"
    guest.execute("iptables -X OTHER; rm -f /root/begun")
    assert guest.execute("iptables-save | grep -c OTHER; ls /etc/cni/net.d").stdout == before


async def test_a_host_that_can_not_be_cleaned_is_put_into_quarantine(
    pool: sshpools.Pool, provider: SSHProvider
) -> None:
    host = await provider.create(request())
    guest = pool.guests[host.name]
    guest.execute("mkdir -p /etc/kubernetes && mount -t tmpfs t /etc/kubernetes")  # which can't be removed
    await provider.delete(host)
    await until_gone(provider, host)
    assert "/etc/kubernetes can't be removed" in guest.execute("cat /var/lib/nodewright/ssh/quarantine").stdout
    other = await provider.create(request())
    assert other.name != host.name
    await provider.delete(other)
    await until_gone(provider, other)
    guest.execute("umount /etc/kubernetes; rm -rf /etc/kubernetes /var/lib/nodewright/ssh/quarantine /root/begun")


async def test_the_files_of_a_claimed_host_are_not_readable_for_others(
    pool: sshpools.Pool, provider: SSHProvider
) -> None:
    """Neither script nor claim are anybody's but root's."""
    host = await provider.create(request())
    home = pool.guests[host.name].root / "var/lib/nodewright/ssh"
    assert (home / "claim").exists()
    assert home.stat().st_mode & 0o077 == 0
    await provider.delete(host)
    await until_gone(provider, host)
