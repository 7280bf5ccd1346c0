"""Whatever breaks between a controller and its hosts: none is two Machines', none is lost, none is handed on dirty."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncssh
import pytest
import pytest_asyncio

from providers.base.contract import BOOTSTRAP_DATA, BootstrapRef, Host, HostIdentity, HostRequest, HostState
from providers.base.errors import ErrorClass, ProviderError
from providers.ssh import connections, login
from providers.ssh import provider as looking
from providers.ssh.config import parse
from providers.ssh.provider import SSHProvider, _claim_for
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


async def persistent(provider: SSHProvider, wanted: HostRequest) -> str:
    """As the controllers call: again after an error that passes. The id of the host."""
    for _ in range(5):
        try:
            return (await provider.create(wanted)).id
        except ProviderError as error:
            if error.error_class not in {ErrorClass.CONFLICT, ErrorClass.TIMEOUT}:
                raise
    raise AssertionError("no host after five tries")


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("word", ["look", "claim", "start"])
async def test_a_connection_that_is_cut_at_a_step_costs_no_second_host(
    world: World, provider: SSHProvider, word: str, where: str
) -> None:
    await provider.list()
    wanted = request()
    for host in world.hosts.values():
        host.cut = {word: where}
    host_id = await persistent(provider, wanted)
    assert len(world.claims()) == 1
    name = host_id.partition("/")[0]
    assert (world.hosts[name].home / "started").read_text().strip() == host_id.partition("/")[2]
    starts = (world.hosts[name].root / "systemctl.log").read_text().count("start --no-block")
    assert starts == 1, "the steps were begun twice"


@pytest.mark.parametrize("word", ["claim", "start"])
async def test_a_host_that_is_lost_at_a_step_is_waited_for_and_stays_that_machines(
    world: World, controllers: list[SSHProvider], word: str
) -> None:
    """It goes down for long at that moment, and the controller is started anew: nobody claims a second host."""
    wanted, lost = request(), world.hosts["h1"]
    lost.cut = {word: "down"}
    for controller in (controllers[0], controllers[0], controllers[1]):
        with pytest.raises(ProviderError) as caught:
            await controller.create(wanted)
        assert caught.value.error_class is ErrorClass.TIMEOUT
        assert "host h1 (127.0.0.1" in caught.value.message
    (listed,) = await controllers[1].list()
    assert (listed.machine_uid, listed.state) == (wanted.identity.machine_uid, HostState.RUNNING)
    await lost.up()
    assert (await controllers[1].create(wanted)).name == "h1"
    assert len(world.claims()) == 1


async def half_claimed(world: World, controllers: list[SSHProvider]) -> tuple[HostRequest, Host]:
    """The first controller was killed between the claim and the start; what the second one sees of the host then."""
    wanted, lost = request(), world.hosts["h1"]
    lost.cut = {"claim": "down"}
    with pytest.raises(ProviderError):
        await controllers[0].create(wanted)
    await lost.up()
    (left,) = await controllers[1].list()
    return wanted, left


async def test_a_claim_whose_steps_were_never_started_is_unfinished_until_a_successor_starts_them(
    world: World, controllers: list[SSHProvider]
) -> None:
    """Nothing on the host would ever join it."""
    wanted, left = await half_claimed(world, controllers)
    assert (left.machine_uid, left.state) == (wanted.identity.machine_uid, HostState.UNFINISHED)
    made = await controllers[1].create(wanted)
    assert (made.id, made.provider_id, made.state) == (left.id, left.provider_id, HostState.RUNNING)
    assert await controllers[1].list() == (made,)
    assert "start --no-block" in (world.hosts[made.name].root / "systemctl.log").read_text()


async def test_a_claim_whose_steps_were_never_started_goes_with_its_machine(
    world: World, controllers: list[SSHProvider]
) -> None:
    _, left = await half_claimed(world, controllers)
    await controllers[1].delete(left)
    (going,) = await controllers[1].list()
    assert (going.id, going.state) == (left.id, HostState.DELETING)


async def test_a_host_that_needs_no_steps_is_whole_once_it_is_claimed(world: World, provider: SSHProvider) -> None:
    made = await provider.create(replace(request(), bootstrap=None))
    assert made.state is HostState.RUNNING
    assert await provider.list() == (made,)


async def test_a_host_that_has_joined_is_whole_whatever_was_noted_of_its_start(
    world: World, provider: SSHProvider
) -> None:
    """A loss of power may take a small file along that was just written."""
    made = await provider.create(request())
    world.hosts[made.name].has_joined()
    (world.hosts[made.name].home / "started").unlink()
    assert [host.state for host in await provider.list()] == [HostState.RUNNING]


async def test_two_controllers_at_once_give_each_machine_one_host(world: World, controllers: list[SSHProvider]) -> None:
    wanted = [request() for _ in range(3)]
    calls = [persistent(each, one) for one in wanted for each in controllers]
    ids = await asyncio.gather(*calls, return_exceptions=True)
    claims = [json.loads(text)["machine_uid"] for text in world.claims()]
    assert len(claims) == len(set(claims)), "a Machine has two hosts"
    for number, one in enumerate(wanted):
        found = {each for each in ids[2 * number : 2 * number + 2] if isinstance(each, str)}
        assert len(found) <= 1, one
    for one in wanted:
        await persistent(controllers[1], one)
    assert sorted(json.loads(text)["machine_uid"] for text in world.claims()) == sorted(
        one.identity.machine_uid for one in wanted
    )


async def test_a_claim_that_another_controller_is_about_to_make_is_not_taken_for_over(
    world: World, controllers: list[SSHProvider]
) -> None:
    """The first has written what it claims and has not reached the host yet; the second looks over the pool."""
    wanted = request()
    await controllers[0].list()
    pool = await controllers[0]._pool()
    intent = replace(controllers[0]._last["h1"], claim=_claim_for(wanted, parse(wanted.config)))
    await controllers[0]._record(pool, intent)
    await controllers[1].list()
    assert world.objects.pool["status"]["hosts"]["h1"]["state"] == "Claimed"


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
         "racks-key has a passphrase"),
        ({"ssh-privatekey": _PLAIN.export_public_key()}, "is a public key"),
        ({"ssh-privatekey": _PLAIN.export_private_key(), "passphrase": b"open"}, "passphrase of Secret racks-key"),
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


async def test_a_key_as_ssh_keygen_makes_it_with_a_passphrase_is_refused_by_name(
    world: World, provider: SSHProvider, tmp_path: Path
) -> None:
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "opened", "-f", str(tmp_path / "key")]
    await asyncio.to_thread(subprocess.run, make, check=True)
    world.secrets.secrets[SECRET] = {"ssh-privatekey": (tmp_path / "key").read_bytes()}
    with pytest.raises(ProviderError, match=f"ssh-privatekey of Secret {SECRET} has a passphrase"):
        await provider.list()


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


async def test_a_host_on_which_no_claim_can_be_written_is_passed_over_and_named(
    world: World, controllers: list[SSHProvider], provider: SSHProvider
) -> None:
    """Its disk is full, or read-only: the next one is taken, and none is held by a Machine that has another."""
    for name in ("h1", "h2"):
        world.hosts[name].home.parent.mkdir(parents=True)
        world.hosts[name].home.write_text("in the way of the folder")
    taken = await provider.create(request())
    assert taken.name == "h3"
    assert len(world.claims()) == 1
    await world.hosts["h1"].down()
    assert [host.id for host in await controllers[1].list()] == [taken.id], (
        "a host that is lost counts as the Machine's"
    )
    await world.hosts["h1"].up()
    await provider.list()
    with pytest.raises(ProviderError) as caught:
        await provider.create(request())
    assert caught.value.error_class is ErrorClass.STOCK_OUT
    assert "host h1 (127.0.0.1" in caught.value.message
    assert "can't do step claim" in caught.value.message


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


async def test_a_claim_of_another_cluster_is_left_alone(world: World, provider: SSHProvider) -> None:
    """Two management clusters may name the same machines in their pools."""
    home = world.hosts["h1"].home
    home.mkdir(parents=True)
    (home / "claim").write_text("0badc0ffee00\nnot one of ours\n")
    assert (await provider.create(request())).name == "h2"
    assert (home / "claim").read_text() == "0badc0ffee00\nnot one of ours\n"
    assert [host.name for host in await provider.list()] == ["h2"]


async def test_a_host_that_says_it_is_another_machines_too_is_not_believed(world: World, provider: SSHProvider) -> None:
    """Somebody else is root on it, and copies a claim with an earlier date."""
    host = await provider.create(request())
    liar = next(each for name, each in world.hosts.items() if name != host.name)
    told = json.loads(world.hosts[host.name].claim()) | {"id": "0badc0ffee00", "created_at": "2001-01-01T00:00:00Z"}
    liar.home.mkdir(parents=True, exist_ok=True)
    (liar.home / "claim").write_text(f"0badc0ffee00\n{json.dumps(told)}\n")
    for _ in range(3):
        assert [each.id for each in await provider.list()] == [host.id]


async def test_an_answer_without_end_is_cut_off(world: World, provider: SSHProvider) -> None:
    world.hosts["h1"].endless = True
    assert (await provider.create(request())).name == "h2"
    await provider.list()
    assert "more than 65536 characters" in world.objects.pool["status"]["hosts"]["h1"]["reason"]


async def test_a_delete_that_comes_late_does_not_touch_the_next_claim(world: World, provider: SSHProvider) -> None:
    old = await provider.create(request())
    await provider.delete(old)
    world.clean()
    await provider.list()
    new = await provider.create(request())
    assert new.name == old.name
    await provider.delete(old)
    assert not (world.hosts[new.name].home / "releasing").exists()


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
