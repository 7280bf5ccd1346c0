"""Whatever breaks between a controller and its hosts: none is two Machines', none is lost, none is handed on dirty."""

from __future__ import annotations

import asyncio
import json
import socket
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncssh
import pytest
import pytest_asyncio

from providers.base.contract import BOOTSTRAP_DATA, BootstrapRef, HostIdentity, HostRequest, HostState
from providers.base.errors import ErrorClass, ProviderError
from providers.ssh import connections, login
from providers.ssh import provider as looking
from providers.ssh.provider import SSHProvider
from tests.providers.sshworld import POOL, SECRET, World

CONFIG: dict[str, Any] = {"apiVersion": "ssh.nodewright.dev/v1alpha1", "kind": "SSHMachineConfig", "pool": POOL}
TOKEN = "abcdef.0123456789abcdef"
SCRIPTS = {"join": {BOOTSTRAP_DATA: f"#!/bin/sh\n# {TOKEN}\n".encode()}}


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path, 3, SCRIPTS)
    await made.up()
    yield made
    await made.down()


@pytest_asyncio.fixture
async def controllers(world: World) -> AsyncIterator[list[SSHProvider]]:
    """Two of them, which know nothing of each other."""
    made = [SSHProvider(POOL, world.secrets, world.objects) for _ in range(2)]
    yield made
    for each in made:
        await each.close()


@pytest.fixture
def provider(controllers: list[SSHProvider]) -> SSHProvider:
    return controllers[0]


def request() -> HostRequest:
    uid = str(uuid.uuid4())
    identity = HostIdentity(uid, "default", f"m-{uid[:4]}", "", "here")
    return HostRequest(identity, CONFIG, "hash", bootstrap=BootstrapRef("join"))


async def test_a_host_that_hangs_holds_up_nobody(
    world: World, provider: SSHProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes the connection and then says nothing, at the handshake or at the command."""
    mute = socket.create_server(("127.0.0.1", 0))
    try:
        world.publish(h1={"port": mute.getsockname()[1]})
        world.hosts["h2"].hangs = True
        monkeypatch.setattr(login, "CONNECT_TIMEOUT", 5.0)
        monkeypatch.setattr(looking, "LOOK_TIMEOUT", 5.0)
        assert (await provider.create(request())).name == "h3"
        await provider.list()
        states = {name: each["state"] for name, each in world.objects.pool["status"]["hosts"].items()}
        assert states == {"h1": "Unreachable", "h2": "Unreachable", "h3": "Claimed"}
    finally:
        mute.close()


async def test_many_commands_at_once_keep_to_the_sessions_of_one_connection(
    world: World, provider: SSHProvider
) -> None:
    pool = await provider._pool()
    await asyncio.gather(*(provider._look(pool, pool.hosts["h1"]) for _ in range(30)))
    assert world.hosts["h1"].logins == 1
    assert world.hosts["h1"].most_at_once <= connections.SESSIONS_AT_ONCE


async def test_a_host_with_another_key_is_refused_and_named(world: World, provider: SSHProvider) -> None:
    world.hosts["h1"].key = asyncssh.generate_private_key("ssh-ed25519")
    await world.hosts["h1"].down()
    await world.hosts["h1"].up()
    host = await provider.create(request())
    assert host.name == "h2"
    assert world.hosts["h1"].commands == []
    await provider.list()
    status = world.objects.pool["status"]
    assert status["hosts"]["h1"]["state"] == "Unreachable"
    assert "host h1 (127.0.0.1" in status["hosts"]["h1"]["reason"]
    assert "hostKeys" in status["hosts"]["h1"]["reason"]


async def test_a_key_that_no_host_takes_is_told_with_the_name_of_its_secret(
    world: World, provider: SSHProvider
) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519").export_private_key()
    world.secrets.secrets[SECRET] = {"ssh-privatekey": other}
    with pytest.raises(ProviderError):
        await provider.create(request())
    await provider.list()
    assert f"Secret {SECRET}" in world.objects.pool["status"]["hosts"]["h2"]["reason"]


_PLAIN = asyncssh.generate_private_key("ssh-ed25519")
_ISSUER = asyncssh.generate_private_key("ssh-ed25519")
_OTHERS = _ISSUER.generate_user_certificate(_ISSUER, "x").export_certificate()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"ssh-privatekey": _PLAIN.export_private_key("pkcs8-pem", passphrase="open")}, "ssh-privatekey of Secret "
         "racks-key has a passphrase in another format than OpenSSH's"),
        ({"ssh-privatekey": _PLAIN.export_public_key()}, "is a public key"),
        ({"ssh-privatekey": _PLAIN.export_private_key(), "passphrase": b"open"}, "passphrase of Secret racks-key"
         " is a passphrase, whose field is ssh-passphrase"),
        ({"ssh-privatekey": _PLAIN.export_private_key(), "ssh-cert": b"x"}, "ssh-cert of Secret racks-key"
         " is an SSH certificate, whose field is ssh-certificate"),
        ({"ssh-privatekey": _PLAIN.export_private_key(), "ssh-certificate": b"x"}, "is no SSH certificate"),
        ({"ssh-privatekey": _PLAIN.export_private_key(), "ssh-certificate": _OTHERS}, "is of another key than its"),
        ({"ssh-privatekey": _PLAIN.export_private_key(), "sudo-password": b"open"}, "sudo-password of Secret"),
        ({"ssh-privatekey": _PLAIN.generate_user_certificate(_PLAIN, "x").export_certificate()}, "an SSH certificate"),
    ],
)  # fmt: skip
async def test_a_login_that_is_not_supported_is_refused_with_the_name_of_its_field(
    world: World, provider: SSHProvider, data: dict[str, bytes], said: str
) -> None:
    """Before any host is asked: it could only answer that it refuses the login."""
    world.secrets.secrets[SECRET] = data
    with pytest.raises(ProviderError) as caught:
        await provider.list()
    told = caught.value.message
    assert caught.value.error_class is ErrorClass.INVALID_CONFIGURATION
    assert said in told
    assert "open" not in told.replace("openssh", "")
    assert all(host.logins == 0 for host in world.hosts.values())


async def test_a_certificate_of_the_key_is_shown_to_hosts_that_trust_its_issuer(
    world: World, provider: SSHProvider
) -> None:
    """They don't know the key itself. The Secret is read at each login: a certificate that is over is renewed there."""
    trusting = f"cert-authority {_ISSUER.export_public_key().decode()}"
    for host in world.hosts.values():
        await host.down()
        await host.up(trusting)
    await provider.list()
    assert {each["state"] for each in world.objects.pool["status"]["hosts"].values()} == {"Unreachable"}
    certificate = _ISSUER.generate_user_certificate(_PLAIN, "controllers", principals=["root"]).export_certificate()
    world.secrets.secrets[SECRET] = {"ssh-privatekey": _PLAIN.export_private_key(), "ssh-certificate": certificate}
    await provider.list()
    assert {each["state"] for each in world.objects.pool["status"]["hosts"].values()} == {"Free"}


async def test_a_host_key_that_is_a_certificate_is_refused_by_name(world: World, provider: SSHProvider) -> None:
    ca = asyncssh.generate_private_key("ssh-ed25519")
    certificate = ca.generate_host_certificate(world.hosts["h1"].key, "h1").export_certificate().decode().strip()
    world.publish(h1={"hostKeys": [certificate]})
    await provider.list()
    reason = world.objects.pool["status"]["hosts"]["h1"]["reason"]
    assert "an entry in hostKeys that is an SSH certificate" in reason


@pytest.mark.parametrize("data", [{}, {"ssh-privatekey": b"rubbish"}, {"password": b"x"}])
async def test_a_secret_without_a_usable_key_is_named(
    world: World, provider: SSHProvider, data: dict[str, bytes]
) -> None:
    world.secrets.secrets[SECRET] = data
    with pytest.raises(ProviderError) as caught:
        await provider.list()
    assert caught.value.error_class is ErrorClass.INVALID_CONFIGURATION
    assert SECRET in caught.value.message
    assert "rubbish" not in caught.value.message


async def test_a_user_who_may_not_become_root_is_told(world: World, provider: SSHProvider) -> None:
    world.publish(**{name: {"user": "ops"} for name in world.hosts})
    with pytest.raises(ProviderError) as caught:
        await provider.create(request())
    assert caught.value.error_class is ErrorClass.STOCK_OUT
    await provider.list()
    reason = world.objects.pool["status"]["hosts"]["h1"]["reason"]
    assert "a password is required" in reason
    assert "lets user ops in, who may not do `sudo -n /bin/sh` without a password" in reason


async def test_a_host_that_could_not_be_cleaned_is_nobodys(world: World, provider: SSHProvider) -> None:
    host = await provider.create(request())
    world.hosts[host.name].dirty = True
    await provider.delete(host)
    (going,) = await provider.list()
    assert going.state is HostState.DELETING
    world.clean()
    assert await provider.list() == ()
    status = world.objects.pool["status"]
    assert status["hosts"][host.name] == {"state": "Quarantined", "reason": "the kubelet still runs"}
    assert (status["free"], status["quarantined"]) == (2, 1)
    others = [(await provider.create(request())).name for _ in range(2)]
    assert host.name not in others
    with pytest.raises(ProviderError) as caught:
        await provider.create(request())
    assert caught.value.error_class is ErrorClass.STOCK_OUT
    assert f"{host.name} Quarantined" in caught.value.message


@pytest.mark.parametrize(
    ("off", "bound", "way"), [(7200, "an hour", "ahead"), (-7200, "an hour", "behind"), (-90_000, "a day", "behind")]
)
async def test_a_host_with_a_wrong_clock_is_told_and_gets_no_machine(
    world: World, provider: SSHProvider, off: int, bound: str, way: str
) -> None:
    """Its kubelet would find the certificates of the cluster not valid yet, or over."""
    world.hosts["h1"].clock = off
    assert (await provider.create(request())).name == "h2"
    for _ in range(2):
        await provider.list()
    status = world.objects.pool["status"]["hosts"]["h1"]
    assert status["state"] == "Free"
    assert f"its clock is more than {bound} {way}" in status["reason"]


async def test_a_clock_that_is_a_little_wrong_is_told_and_costs_nothing(world: World, provider: SSHProvider) -> None:
    world.hosts["h1"].clock = 200
    assert (await provider.create(request())).name == "h1"
    await provider.list()
    assert "more than a minute ahead" in world.objects.pool["status"]["hosts"]["h1"]["reason"]
    written = world.objects.pool["metadata"]["resourceVersion"]
    await provider.list()
    assert world.objects.pool["metadata"]["resourceVersion"] == written, "the status is written at each look"


async def test_an_answer_without_end_is_cut_off(world: World, provider: SSHProvider) -> None:
    world.hosts["h1"].endless = True
    assert (await provider.create(request())).name == "h2"
    await provider.list()
    assert "more than 65536 characters" in world.objects.pool["status"]["hosts"]["h1"]["reason"]


async def test_nothing_secret_is_an_argument_or_a_variable(world: World, provider: SSHProvider) -> None:
    host = await provider.create(request())
    await provider.delete(host)
    for each in world.hosts.values():
        assert all(command == ("/bin/sh -s", {}) for command in each.commands)
    assert TOKEN not in json.dumps(world.objects.pool)
    assert TOKEN not in "".join(world.claims())


async def test_an_address_that_servers_may_not_have_is_not_connected_to(world: World, provider: SSHProvider) -> None:
    world.publish(h1={"address": "169.254.169.254"})
    assert (await provider.create(request())).name == "h2"
    await provider.list()
    assert "169.254.169.254" in world.objects.pool["status"]["hosts"]["h1"]["reason"]


@pytest.mark.parametrize(("tries", "failed"), [(9, False), (10, True)])
async def test_steps_that_fail_again_and_again_fail_the_host_with_their_last_lines(
    world: World, provider: SSHProvider, tries: int, failed: bool
) -> None:
    host = await provider.create(request())
    state = world.hosts[host.name].root / "var/lib/nodewright/bootstrap"
    state.mkdir(parents=True)
    (state / "failure").write_text(f"22 {tries} 4/9 install kubelet 1.36.1\n")
    (state / "failed.log").write_text(f"curl: (22) 404\ntoken {TOKEN}\n")
    (listed,) = await provider.list()
    assert (listed.state is HostState.FAILED) == failed
    if failed:
        assert "step 4/9 install kubelet 1.36.1 failed with 22, 10 times: curl: (22) 404" in listed.failure
        assert TOKEN not in listed.failure
