"""The kubelet of a host of a pool is changed where it is, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from providers.base.contract import (
    Host,
    HostContent,
    HostRequest,
    HostState,
    InProgress,
    KubeletUpgrade,
    NeedsDrain,
    NeedsReplacement,
    Updated,
    Versions,
)
from providers.base.errors import ErrorClass, ProviderError
from providers.ssh.provider import SSHProvider
from providers.ssh.remote import JOIN_UNIT
from tests.providers.sshfixtures import provider as provider  # noqa: PLC0414 - a fixture
from tests.providers.sshworld import FakeHost, World
from tests.providers.test_ssh_faults import SCRIPTS, TOKEN, request

OLD = replace(request(), spec_hash="old", kept_hash="kept", versions=Versions("1.36.2"))
NEW = replace(OLD, spec_hash="new", versions=Versions("1.36.3"), upgrade=KubeletUpgrade("#!/bin/sh\ntrue\n", ""))
BACK = replace(OLD, upgrade=KubeletUpgrade("#!/bin/sh\nfalse\n", ""))


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path, 2, SCRIPTS)
    await made.up()
    yield made
    await made.down()


async def joined(world: World, provider: SSHProvider) -> tuple[Host, FakeHost]:
    host = await provider.create(OLD)
    held = world.hosts[host.name]
    held.has_joined()
    return host, held


async def listed(provider: SSHProvider) -> Host:
    (host,) = await provider.list()
    return host


async def test_the_kubelet_is_changed_on_the_same_host_once_its_pods_are_gone(
    world: World, provider: SSHProvider
) -> None:
    host, held = await joined(world, provider)
    assert isinstance(await provider.update(NEW, host, drained=False), NeedsDrain)
    assert not (held.home / "changing").exists()

    assert isinstance(await provider.update(NEW, host, drained=True), InProgress)
    now = await listed(provider)
    assert (now.id, now.state) == (host.id, HostState.UPDATING)
    assert now.spec_hash not in {"old", "new"}
    assert (held.home / "change.sh").read_text() == NEW.upgrade.script
    assert (held.home / "change.sh").stat().st_mode & 0o777 == 0o600

    assert isinstance(await provider.update(NEW, now, drained=True), InProgress)
    held.has_changed()
    assert isinstance(await provider.update(NEW, now, drained=True), Updated)
    after = await listed(provider)
    assert (after.id, after.state, after.spec_hash) == (host.id, HostState.RUNNING, "new")
    assert isinstance(await provider.update(NEW, after, drained=False), Updated)
    assert not (held.home / "change.sh").exists()


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("cut_at", range(4))
async def test_a_connection_that_is_cut_at_any_call_costs_nothing(
    world: World, provider: SSHProvider, cut_at: int, where: str
) -> None:
    host, held = await joined(world, provider)
    for number in range(20):
        if number == cut_at:
            held.cut = {"change": where}
        if number == 2:
            held.has_changed()
        try:
            answer = await provider.update(NEW, await listed(provider), drained=True)
        except ProviderError:
            continue  # the controllers ask again
        if isinstance(answer, Updated) and number > 2:
            break
    now = await listed(provider)
    assert (now.id, now.spec_hash, len(world.claims())) == (host.id, "new", 1)


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (replace(NEW, kept_hash="other"), "more is different than versions"),
        (replace(NEW, kept_hash=""), "more is different than versions"),
        (replace(NEW, kept_hash="other", fixed_hash="another"), "more is different than versions"),
        (replace(NEW, upgrade=KubeletUpgrade(why_not="the image brings the kubelet")), "the image brings"),
    ],
)
async def test_what_can_not_be_changed_on_a_host_needs_another_one(
    world: World, provider: SSHProvider, wanted: HostRequest, why: str
) -> None:
    host, held = await joined(world, provider)
    answer = await provider.update(wanted, host, drained=True)
    assert isinstance(answer, NeedsReplacement)
    assert why in answer.why
    assert not (held.home / "changing").exists()


async def test_files_and_configuration_are_changed_under_running_pods_and_programs_are_not(
    world: World, provider: SSHProvider
) -> None:
    old = replace(OLD, fixed_hash="fixed", pods_hash="pods")
    host = await provider.create(old)
    world.hosts[host.name].has_joined()
    image = KubeletUpgrade(NEW.upgrade.script, "the image brings the kubelet")
    files = replace(old, spec_hash="files", kept_hash="other", upgrade=image)
    runtime = replace(old, spec_hash="runtime", kept_hash="other", pods_hash="no", upgrade=NEW.upgrade)
    assert isinstance(await provider.update(runtime, host, drained=False), NeedsDrain)
    without = await provider.update(replace(runtime, upgrade=image), host, drained=True)
    assert without == NeedsReplacement("the image brings the kubelet")
    assert isinstance(await provider.update(files, host, drained=False), InProgress)
    world.hosts[host.name].has_changed()
    assert isinstance(await provider.update(files, await listed(provider), drained=False), Updated)
    claim = json.loads(world.hosts[host.name].claim())
    assert [claim[name] for name in ("spec_hash", "kept_hash", "fixed_hash", "pods_hash")] == [
        "files", "other", "fixed", "pods",
    ]  # fmt: skip


async def test_a_host_that_joins_has_to_end_that_first(world: World, provider: SSHProvider) -> None:
    """Its Node may be Ready before the last step of the join is done."""
    host = await provider.create(OLD)
    held = world.hosts[host.name]
    held.begins(JOIN_UNIT)
    answer = await provider.update(NEW, host, drained=True)
    assert answer == InProgress(3.0, "the steps for an earlier version of its Machine have to end first")
    (held.home.parent / "bootstrap").mkdir()
    (held.home.parent / "bootstrap" / "failure").write_text("1 3 4/9 join the cluster")
    assert isinstance(await provider.update(NEW, host, drained=True), NeedsReplacement)


async def test_a_host_that_has_not_joined_is_not_changed(world: World, provider: SSHProvider) -> None:
    host = await provider.create(OLD)
    assert isinstance(await provider.update(NEW, host, drained=True), NeedsReplacement)


async def test_an_earlier_version_that_is_wanted_again_is_brought_back(world: World, provider: SSHProvider) -> None:
    """The steps for the other one may be half done: that the claim has the wanted hash proves nothing."""
    host, held = await joined(world, provider)
    await provider.update(NEW, host, drained=True)
    now = await listed(provider)
    assert isinstance(await provider.update(BACK, now, drained=True), InProgress)
    assert (held.home / "changing").read_text().strip() == "old"
    assert (held.home / "change.sh").read_text() == BACK.upgrade.script
    held.has_changed()
    assert isinstance(await provider.update(BACK, await listed(provider), drained=True), Updated)
    assert (await listed(provider)).spec_hash == "old"


async def test_a_step_that_fails_is_told_and_the_host_is_not_taken_for_failed(
    world: World, provider: SSHProvider
) -> None:
    host, held = await joined(world, provider)
    await provider.update(NEW, host, drained=True)
    state = held.home.parent / "bootstrap"
    state.mkdir()
    (state / "failure").write_text("1 12 3/6 install kubelet 1.36.3\n")
    (state / "failed.log").write_text(f"the mirror does not answer {TOKEN}\n")
    now = await listed(provider)
    assert (now.state, now.failure) == (HostState.UPDATING, "")
    answer = await provider.update(NEW, now, drained=True)
    assert isinstance(answer, InProgress)
    assert "step 3/6 install kubelet 1.36.3 failed with 1, 12 times: the mirror does not answer" in answer.why
    assert TOKEN not in answer.why


async def test_a_host_that_is_given_back_is_not_changed(world: World, provider: SSHProvider) -> None:
    host, _ = await joined(world, provider)
    await provider.update(NEW, host, drained=True)
    await provider.delete(host)
    with pytest.raises(ProviderError) as told:
        await provider.update(NEW, host, drained=True)
    assert told.value.error_class is ErrorClass.CONFLICT
    world.clean()
    other = replace(OLD, identity=request().identity)
    taken = {(await provider.create(other)).name}
    assert taken <= world.hosts.keys()
    assert all(one.state is HostState.RUNNING for one in await provider.list())


async def test_a_host_that_went_back_says_why_and_begins_only_what_is_asked_anew(
    world: World, provider: SSHProvider
) -> None:
    host, held = await joined(world, provider)
    assert isinstance(await provider.update(NEW, host, drained=True), InProgress)
    state = held.home.parent / "bootstrap"
    state.mkdir(exist_ok=True)
    lines = "step 6/10 x failed with 1, and the host went back:\nErrors faced: timed out\nabcdef.0123456789abcdef\n"
    (state / "gave-up").write_text(lines)
    for _ in range(2):  # also where nobody remembers that it was drained
        answer = await provider.update(NEW, await listed(provider), drained=False)
        assert isinstance(answer, InProgress)
        assert answer.failed
        assert "went back: | Errors faced: timed out" in answer.why
        assert "0123456789abcdef" not in answer.why
    newest = replace(NEW, spec_hash="newest")
    assert isinstance(await provider.update(newest, await listed(provider), drained=False), NeedsDrain)
    answer = await provider.update(newest, await listed(provider), drained=True)
    assert isinstance(answer, InProgress)
    assert not answer.failed
    assert not (state / "gave-up").exists()


FILE = HostContent("files", "key", "spec.bootstrap.files[0].contentFrom")
WITH_FILE = replace(NEW, upgrade=replace(NEW.upgrade, contents=(FILE,)), pods_hash="pods", fixed_hash="fixed")


async def test_files_of_secrets_come_with_the_steps_and_with_nothing_else(world: World, provider: SSHProvider) -> None:
    host = await provider.create(replace(OLD, pods_hash="pods", fixed_hash="fixed"))
    held = world.hosts[host.name]
    held.has_joined()
    world.secrets.secrets["files"] = {"key": b"very secret"}
    world.secrets.types["files"] = "nodewright.dev/host-files"
    assert isinstance(await provider.update(WITH_FILE, host, drained=False), InProgress)
    script = held.home / "change.sh"
    assert script.read_text().splitlines()[:2] == ["#!/bin/sh", "content_0=dmVyeSBzZWNyZXQ="]
    assert script.stat().st_mode & 0o777 == 0o600
    assert "dmVyeSBzZWNyZXQ=" not in "".join(command for command, _ in held.commands)
    held_back = world.secrets.secrets.pop("files")  # the steps are on the host, and go on
    assert isinstance(await provider.update(WITH_FILE, host, drained=False), InProgress)
    world.secrets.secrets["files"] = held_back
    held.has_changed()
    assert isinstance(await provider.update(WITH_FILE, host, drained=False), Updated)
    assert not script.exists()


@pytest.mark.parametrize(
    ("secrets", "kind", "said"),
    [
        ({}, "", "Secret contract/files does not exist"),
        ({"files": {"key": b"x"}}, "Opaque", "is not of the type nodewright.dev/host-files"),
        ({"files": {"other": b"x"}}, "nodewright.dev/host-files", "Secret files has no key key"),
    ],
)
async def test_a_secret_that_is_not_for_hosts_is_refused_by_the_machines_field_and_nothing_is_begun(
    world: World, provider: SSHProvider, secrets: dict[str, dict[str, bytes]], kind: str, said: str
) -> None:
    host = await provider.create(replace(OLD, pods_hash="pods", fixed_hash="fixed"))
    world.hosts[host.name].has_joined()
    world.secrets.secrets |= secrets
    world.secrets.types["files"] = kind
    with pytest.raises(ProviderError, match=r": spec\.bootstrap\.files\[0\]\.contentFrom: .*" + said) as caught:
        await provider.update(WITH_FILE, host, drained=False)
    assert caught.value.error_class is ErrorClass.INVALID_CONFIGURATION
    assert not (world.hosts[host.name].home / "change.sh").exists()
