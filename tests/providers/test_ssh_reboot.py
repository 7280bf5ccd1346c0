"""A reboot over SSH happens once for each attempt, and a host that hangs is rebooted by its power command."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from providers.base import power
from providers.base.contract import Host
from providers.base.errors import ErrorClass, ProviderError
from providers.ssh.provider import SSHProvider
from tests.providers.sshworld import FakeHost, HeldSecrets, World
from tests.providers.test_ssh_in_place import joined, provider, world

__all__ = ["provider", "world"]
POWER = {"command": "bmc", "address": "127.0.0.1", "user": "ADMIN", "secretName": "bmc"}
PASSWORD = "calvin-of-the-bmc"


@pytest.fixture(autouse=True)
def _nobody_elses_commands() -> Iterator[None]:
    yield
    power.use({})


def commands(folder: Path, body: str, **changes: Any) -> Path:
    """The administrator's command ``bmc``, which writes down what it was given; the file it writes to."""
    program = folder / "bmc"
    noted = folder / "noted"
    program.write_text(
        f'#!/bin/sh\necho "$*" >> {noted}.argv\nenv >> {noted}.env\ncat "$6" >> {noted}.password\n{body}\n'
    )
    program.chmod(0o755)
    argv = (str(program), "-H", "{address}", "-U", "{user}", "-f", "{password-file}", "cycle")
    made = {"argv": argv, "namespaces": frozenset({"contract"}), **changes}
    power.use({"bmc": power.PowerCommand("bmc", **made)})
    return noted


def given(noted: Path, what: str) -> str:
    """``argv``, ``env`` or ``password`` of the runs so far; "" if there was none."""
    file = Path(f"{noted}.{what}")
    return file.read_text() if file.exists() else ""


def lives(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().split()[2] != "Z"


def with_power(world: World, name: str, **changes: Any) -> None:
    assert isinstance(world.secrets, HeldSecrets)
    world.secrets.secrets["bmc"] = {"password": PASSWORD.encode()}
    entries = world.objects.pool["spec"]["hosts"]
    hosts = [{**each, "power": {**POWER, **changes}} if each["name"] == name else each for each in entries]
    pool = world.objects.pool
    world.objects.pool = {**pool, "spec": {**pool["spec"], "hosts": hosts}}


def record(world: World, name: str) -> dict[str, Any]:
    return dict(world.objects.pool["status"]["hosts"][name].get("reboot") or {})


async def hangs(world: World, provider: SSHProvider) -> tuple[Host, FakeHost]:
    """A host that has joined and does not answer any more."""
    host, held = await joined(world, provider)
    await provider.list()
    await held.down()
    return host, held


async def test_the_attempt_is_recorded_before_the_host_is_asked(world: World, provider: SSHProvider) -> None:
    """Killed in between: the next process asks again, and the host compares its boot id."""
    host, held = await joined(world, provider)
    held.cut["reboot"] = "before"
    await provider.reboot(host, "one")
    assert record(world, host.name)["attempt"] == "one"
    assert record(world, host.name)["by"] == "SSH"
    await provider.reboot(host, "one")
    await provider.reboot(host, "one")
    assert held.reboots == 1
    shown = await provider.get(host.machine_uid)
    assert shown is not None
    assert shown.rebooted == "one"


async def test_where_the_record_can_not_be_written_nothing_is_done(world: World, provider: SSHProvider) -> None:
    host, held = await joined(world, provider)

    async def refused(*_: object) -> dict[str, Any]:
        raise ProviderError(ErrorClass.CONFLICT, "changed meanwhile")

    world.objects.report = refused  # type: ignore[method-assign]
    with pytest.raises(ProviderError, match="changed meanwhile"):
        await provider.reboot(host, "one")
    assert held.reboots == 0


async def test_the_order_gets_through_while_the_hosts_lock_is_held(world: World, provider: SSHProvider) -> None:
    """What hangs on a sick host may hold it."""
    host, held = await joined(world, provider)
    holder = await asyncio.create_subprocess_exec("flock", str(held.home / "lock"), "sleep", "60")
    try:
        await provider.reboot(host, "one")
        assert held.reboots == 1
    finally:
        holder.kill()
        await holder.wait()


async def test_a_host_without_power_that_does_not_answer_takes_no_attempt(world: World, provider: SSHProvider) -> None:
    host, _ = await hangs(world, provider)
    with pytest.raises(ProviderError, match="it has no power command") as refused:
        await provider.reboot(host, "one")
    assert refused.value.error_class is ErrorClass.TIMEOUT
    assert record(world, host.name) == {}


async def test_one_that_hangs_is_rebooted_by_its_power_command_once(
    world: World, provider: SSHProvider, tmp_path: Path
) -> None:
    noted = commands(tmp_path, "exit 0")
    host, held = await hangs(world, provider)
    with_power(world, host.name)
    for _ in range(3):
        await provider.reboot(host, "one")
    other = SSHProvider("racks", world.secrets, world.objects)
    try:
        await other.reboot(host, "one")
    finally:
        await other.close()
    words = given(noted, "argv").split()
    assert words[:5] == ["-H", "127.0.0.1", "-U", "ADMIN", "-f"]
    assert words[6:] == ["cycle"]  # and nothing of a second run
    assert given(noted, "password") == PASSWORD
    held.boot()
    await held.up()
    shown = await provider.get(host.machine_uid)
    assert shown is not None
    assert shown.rebooted == "one"


async def test_the_command_knows_nothing_of_the_controllers_and_nothing_knows_the_password(
    world: World, provider: SSHProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/secret/kubeconfig")
    noted = commands(tmp_path, f'cat "$6"; echo "wrong password {PASSWORD}" >&2; exit 3')
    host, _ = await hangs(world, provider)
    with_power(world, host.name)
    with pytest.raises(ProviderError) as refused:
        await provider.reboot(host, "one")
    assert "by its power command: bmc ended with 3" in refused.value.message
    told = given(noted, "env") + given(noted, "argv")
    assert "KUBECONFIG" not in told
    for text in (told, refused.value.message, str(world.objects.pool)):
        assert PASSWORD not in text
    with pytest.raises(ProviderError, match="ended with 3"):
        await provider.reboot(host, "one")
    assert len(given(noted, "argv").splitlines()) == 1, "it is not run again for the same attempt"


async def test_a_command_that_does_not_end_is_ended_with_all_that_it_started(
    world: World, provider: SSHProvider, tmp_path: Path
) -> None:
    commands(tmp_path, f"sleep 300 & echo $! > {tmp_path}/child; wait", seconds=1)
    host, _ = await hangs(world, provider)
    with_power(world, host.name)
    with pytest.raises(ProviderError, match="did not end within 1 s"):
        await provider.reboot(host, "one")
    assert not lives(int((tmp_path / "child").read_text()))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"command": "rm"}, "command rm is not in --power-commands for namespace contract"),
        ({"address": None}, "needs address"),
        ({"user": None}, "needs user"),
        ({"secretName": None}, "needs secretName"),
        ({"address": "169.254.169.254"}, "link-local or of a metadata service"),
        ({"secretName": "racks-key"}, "has no key password"),
    ],
)
async def test_what_the_pool_may_not_have_run_is_named_and_takes_no_attempt(
    world: World, provider: SSHProvider, tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    noted = commands(tmp_path, "exit 0")
    host, _ = await hangs(world, provider)
    with_power(world, host.name, **changes)
    with pytest.raises(ProviderError, match=said) as refused:
        await provider.reboot(host, "one")
    assert refused.value.error_class is ErrorClass.INVALID_CONFIGURATION
    assert not given(noted, "argv")
    assert record(world, host.name) == {}


async def test_a_command_of_other_namespaces_is_not_run(world: World, provider: SSHProvider, tmp_path: Path) -> None:
    """It may hold the administrator's own password."""
    commands(tmp_path, "exit 0", namespaces=frozenset({"racks-of-another"}))
    host, _ = await hangs(world, provider)
    with_power(world, host.name)
    with pytest.raises(ProviderError, match="for namespace contract"):
        await provider.reboot(host, "one")


async def test_one_that_did_not_go_down_when_it_was_asked_is_switched_off_at_the_next_attempt(
    world: World, provider: SSHProvider, tmp_path: Path
) -> None:
    noted = commands(tmp_path, "exit 0")
    host, held = await joined(world, provider)
    with_power(world, host.name)
    (held.root / "hung").touch()
    await provider.reboot(host, "one")
    assert not given(noted, "argv")
    await provider.reboot(host, "two")
    assert record(world, host.name)["by"] == "Power"
    assert given(noted, "argv")


async def test_a_host_that_shows_another_key_is_not_switched_off(
    world: World, provider: SSHProvider, tmp_path: Path
) -> None:
    noted = commands(tmp_path, "exit 0")
    host, held = await hangs(world, provider)
    with_power(world, host.name)
    held.key = type(world.hosts["h2"])("other", tmp_path / "another").key
    await held.up()
    with pytest.raises(ProviderError, match="such a host is not rebooted"):
        await provider.reboot(host, "one")
    assert not given(noted, "argv")


async def test_the_next_machine_of_the_host_finds_no_record(world: World, provider: SSHProvider) -> None:
    host, _ = await joined(world, provider)
    await provider.reboot(host, "one")
    await provider.delete(host)
    world.clean()
    await provider.list()
    assert record(world, host.name) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "has to be a map"),
        ("Rm: {command: [/bin/true], namespaces: [a]}", "is no name"),
        ("rm: /bin/rm", "has to be a map of command"),
        ("rm: {command: [/bin/true], namespaces: [a], shell: true}", "has to be a map of command"),
        ("rm: {command: [], namespaces: [a]}", "rm.command: has to be a list of words"),
        ("rm: {command: /bin/rm -rf, namespaces: [a]}", "rm.command: has to be a list of words"),
        ("rm: {command: [ipmitool], namespaces: [a]}", "absolute path"),
        ("rm: {command: ['{address}'], namespaces: [a]}", "absolute path"),
        ("rm: {command: ['/bin/{user}'], namespaces: [a]}", "absolute path"),
        ("rm: {command: [/bin/true, '{password}'], namespaces: [a]}", "rm.command: {password} is none of {address}"),
        ("rm: {command: [/bin/true]}", "rm.namespaces: has to be a list of words"),
        ("rm: {command: [/bin/true], namespaces: ['*'], timeoutSeconds: 600}", "rm.timeoutSeconds: has to be"),
        ("rm: {command: [/bin/true], namespaces: ['*'], timeoutSeconds: true}", "rm.timeoutSeconds: has to be"),
        ("rm: &a {command: [/bin/true], namespaces: ['*']}", "anchors"),
    ],
)
def test_a_file_of_commands_that_can_not_be_used_is_refused_by_field(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("{", r"\{")):
        power.read(text)


def test_the_file_of_the_documentation_can_be_used() -> None:
    page = (Path(__file__).parents[2] / "docs/providers/ssh.md").read_text()
    (text,) = re.findall(r"^```conf\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert power.read(text)["ipmi"].has("password-file")


def test_a_value_is_one_word_whatever_it_holds() -> None:
    found = power.read("bmc: {command: [/bin/bmc, '-H{address}', '{user}'], namespaces: [a]}")["bmc"]
    assert found.filled({"address": "{user} x", "user": "a b", "password-file": ""}) == (
        "/bin/bmc",
        "-H{user} x",
        "a b",
    )
    assert found.may_be_named_in("a")
    assert not found.may_be_named_in("b")
