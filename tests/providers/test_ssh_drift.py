"""What somebody does to a kubelet by hand is seen in the next look, and said in the pool's status."""

from __future__ import annotations

from dataclasses import replace

import pytest

from api.sshhostpool import SSHHost
from providers.ssh import remote
from providers.ssh.claims import Claim
from providers.ssh.looks import Seen, seen, status_of
from providers.ssh.pool import read
from providers.ssh.provider import SSHProvider
from tests.providers.sshworld import POOL, FakeHost, World
from tests.providers.test_ssh_in_place import OLD, joined, provider, world

__all__ = ["provider", "world"]
HOST = SSHHost(name="h1", address="10.0.0.1", host_keys=["ssh-ed25519 AAAA"])
CLAIM = Claim("id", "uid", "ns", "m", "", "hash", "2026-01-01T00:00:00+00:00", kubelet="1.36.2")


async def reason(world: World, provider: SSHProvider, name: str) -> str:
    await provider.list()
    return str(world.objects.pool["status"]["hosts"][name].get("reason", ""))


async def test_a_kubelet_that_was_stopped_is_reported_until_it_runs_again(world: World, provider: SSHProvider) -> None:
    host, held = await joined(world, provider)
    assert await reason(world, provider, host.name) == ""
    (held.root / "active" / "kubelet.service").unlink()
    assert "its kubelet does not run (inactive)" in await reason(world, provider, host.name)
    held.begins("kubelet.service")
    assert await reason(world, provider, host.name) == ""


async def test_a_host_that_joins_or_is_changed_has_no_drift(world: World, provider: SSHProvider) -> None:
    """Its kubelet may stop then."""
    host, held = await joined(world, provider)
    (held.root / "active" / "kubelet.service").unlink()
    for name in ("changing", "releasing", "join.sh"):
        (held.home / name).write_text("x\n")
        assert "does not run" not in await reason(world, provider, host.name)
        (held.home / name).unlink()
    assert "does not run" in await reason(world, provider, host.name)


@pytest.mark.parametrize(
    ("version", "wanted", "said"),
    [
        ("Kubernetes v1.36.2", "1.36.2", ""),
        ("Kubernetes v1.35.4", "1.36.2", "its kubelet is of version 1.35.4, and 1.36.2 was installed"),
        ("Kubernetes v1.36.2-rc.1", "1.36.2", "1.36.2-rc.1"),
        ("Kubernetes v1.35.4", "", ""),
        ("", "1.36.2", ""),
        ("no version at all", "1.36.2", ""),
    ],
)
def test_another_version_than_was_installed_is_reported(version: str, wanted: str, said: str) -> None:
    answer = {"claim": replace(CLAIM, kubelet=wanted).text(), "kubelet": "active", "version": version}
    found = seen(HOST, answer)
    assert said in found.drift
    assert bool(found.drift) == bool(said)
    shown = status_of([found], {})["hosts"]["h1"]
    assert shown.get("reason", "") == found.drift


@pytest.mark.parametrize("state", ["active", "activating", "deactivating", ""])
def test_one_that_is_being_started_is_no_drift(state: str) -> None:
    assert Seen(HOST, claim=CLAIM, kubelet=state).drift == ""


def test_hosts_of_nobody_have_none() -> None:
    assert Seen(HOST, kubelet="failed").drift == ""
    assert OLD.versions.kubelet == "1.36.2"


# -- kubelets that are started again, where the pool says so

REPAIRS = {"kubeletStartsPerHour": 2}


async def test_a_kubelet_that_was_stopped_is_started_again_and_the_look_before_says_so(
    world: World, provider: SSHProvider
) -> None:
    host, held = await joined(world, provider)
    world.publish(REPAIRS)
    held.stops("kubelet.service")
    told = await reason(world, provider, host.name)
    assert "its kubelet does not run (inactive)" in told
    assert "it is started again (1 of 2 times within an hour)" in told
    assert await reason(world, provider, host.name) == ""
    assert held.kubelet_starts == 1


async def test_one_that_does_not_stay_up_is_started_as_often_as_is_said_by_all_controllers_together(
    world: World, provider: SSHProvider
) -> None:
    host, held = await joined(world, provider)
    world.publish(REPAIRS)
    held.stops("kubelet.service", starts=False)
    other = SSHProvider(POOL, world.secrets, world.objects)
    for each in (provider, other, provider, other):
        await each.list()
    await other.close()
    assert held.kubelet_starts == 2
    assert "it was started 2 times within an hour, and is left now" in await reason(world, provider, host.name)


async def test_after_an_hour_it_is_started_again(world: World, provider: SSHProvider) -> None:
    host, held = await joined(world, provider)
    world.publish(REPAIRS)
    held.stops("kubelet.service", starts=False)
    for _ in range(3):
        await provider.list()
    (held.home / "starts").write_text("1\n2\n")
    assert "(1 of 2 times within an hour)" in await reason(world, provider, host.name)
    assert held.kubelet_starts == 3


async def test_a_host_that_joins_is_changed_or_given_back_meanwhile_is_let_alone(
    world: World, provider: SSHProvider
) -> None:
    host, held = await joined(world, provider)
    pool = read(world.objects.pool)
    held.stops("kubelet.service")
    for name in ("changing", "releasing", "join.sh"):
        (held.home / name).write_text("x\n")
        answer = await provider._run(pool, pool.hosts[host.name], remote.start_kubelet(held_id(held), 2), step="look")
        assert set(answer) == {"busy"}
        (held.home / name).unlink()
    answer = await provider._run(pool, pool.hosts[host.name], remote.start_kubelet("another", 2), step="look")
    assert set(answer) == {"gone"}
    assert held.kubelet_starts == 0


async def test_nothing_is_started_where_the_pool_does_not_say_so(world: World, provider: SSHProvider) -> None:
    _, held = await joined(world, provider)
    held.stops("kubelet.service")
    await provider.list()
    assert held.kubelet_starts == 0


def held_id(held: FakeHost) -> str:
    """Of the claim on the host."""
    return (held.home / "claim").read_text().splitlines()[0]
