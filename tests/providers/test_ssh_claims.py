"""A claim is written on the host before all else: one host for each Machine, whatever is cut, lost or killed."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from providers.base.contract import Host, HostRequest, HostState
from providers.base.errors import ErrorClass, ProviderError
from providers.ssh.claims import Claim, claim_for
from providers.ssh.config import parse
from providers.ssh.provider import SSHProvider
from tests.providers.sshworld import World
from tests.providers.test_ssh_faults import controllers, provider, request, world

__all__ = ["controllers", "provider", "world"]


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
    intent = replace(controllers[0]._last["h1"], claim=claim_for(wanted, parse(wanted.config)))
    await controllers[0]._record(pool, intent)
    await controllers[1].list()
    assert world.objects.pool["status"]["hosts"]["h1"]["state"] == "Claimed"


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


async def test_a_delete_that_comes_late_does_not_touch_the_next_claim(world: World, provider: SSHProvider) -> None:
    old = await provider.create(request())
    await provider.delete(old)
    world.clean()
    await provider.list()
    new = await provider.create(request())
    assert new.name == old.name
    await provider.delete(old)
    assert not (world.hosts[new.name].home / "releasing").exists()


async def test_a_claim_that_could_not_be_read_again_takes_no_host(world: World, provider: SSHProvider) -> None:
    """It would be nobody's, and the next try would take the next host."""
    wanted = request()
    config = {**wanted.config, "releaseCommand": ["é" * 1024] * 4}
    with pytest.raises(ProviderError) as caught:
        await provider.create(replace(wanted, config=config))
    assert caught.value.error_class is ErrorClass.INVALID_CONFIGURATION
    assert caught.value.message.startswith("releaseCommand: ")
    assert world.claims() == []
    await provider.create(replace(wanted, config={**wanted.config, "releaseCommand": ["x" * 1024] * 10}))
    assert len(world.claims()) == 1


@pytest.mark.parametrize(
    "changed",
    [{"namespace": "n" * 64}, {"machine": "m" * 254}, {"release_command": "é" * 7000}],
    ids=["namespace", "machine", "command"],
)
def test_what_a_host_says_is_no_claim_if_the_status_of_its_pool_could_not_hold_it(changed: dict[str, str]) -> None:
    """One host of a pool could keep the whole status from being written."""
    fields = json.loads(claim_for(request(), parse(request().config)).text())
    assert Claim.read(json.dumps(fields)) is not None
    assert Claim.read(json.dumps(fields | changed, ensure_ascii=False)) is None


@pytest.mark.parametrize("program", ["sed", "base64"])
async def test_a_claim_that_can_not_be_read_for_a_moment_stays_its_machines(
    world: World, controllers: list[SSHProvider], program: str
) -> None:
    """A host that loses its power may end a part of a command before it ends the shell that runs it."""
    wanted = request()
    host = await controllers[0].create(wanted)
    holder = world.hosts[host.name]
    (holder.root / "bin" / program).write_text("#!/bin/sh\nkill -9 $$\n")
    (holder.root / "bin" / program).chmod(0o755)
    for controller in controllers[:2]:
        kept = await controller.get(wanted.identity.machine_uid)
        assert kept is not None
        assert kept.id == host.id
    (holder.root / "bin" / program).unlink()
    again = await controllers[1].get(wanted.identity.machine_uid)
    assert again is not None
    assert again.id == host.id


async def test_a_release_is_not_taken_for_done_where_a_program_that_reads_the_claim_is_killed(
    world: World, provider: SSHProvider
) -> None:
    host = await provider.create(request())
    holder = world.hosts[host.name]
    sed = holder.root / "bin" / "sed"
    sed.write_text('#!/bin/sh\ncase "$*" in *1p*) kill -9 $$ ;; esac\nexec /bin/sed "$@"\n')
    sed.chmod(0o755)
    await provider.delete(host)
    assert (holder.home / "releasing").exists()
