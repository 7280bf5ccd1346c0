"""The SSH provider keeps the contract over real SSH against hosts that are folders."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest_asyncio

from providers.base.contract import Host, Provider
from providers.base.contract_tests import BOOTSTRAP_SECRETS, ProviderContract
from providers.ssh import registration
from providers.ssh.provider import SSHProvider
from tests.providers.sshworld import POOL, World

CONFIG: dict[str, Any] = {"apiVersion": "ssh.nodewright.dev/v1alpha1", "kind": "SSHMachineConfig", "pool": POOL}


def test_without_asyncssh_the_kind_is_known_and_the_remedy_is_told() -> None:
    """It is an extra: who has no such hosts needs none of it."""
    program = """
import sys
sys.modules["asyncssh"] = None
from providers.base.registry import Registry
registry = Registry.installed()
assert "ssh" in [each.name for each in registry.registrations()], registry.broken
found = registry.find("ssh.nodewright.dev/v1alpha1", "SSHMachineConfig")
try:
    found.registration.open_with_objects("racks", {"pool": "racks"}, None, None)
except Exception as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert re.search(r"need the extra: pip install .*\[ssh\]'", done.stdout)


class TestSSH(ProviderContract):
    registration = registration
    valid_config: ClassVar = CONFIG
    changed_config: ClassVar = {**CONFIG, "release": "Leave"}
    impossible_config: ClassVar = {**CONFIG, "hostSelector": {"rack": "nowhere"}}

    @pytest_asyncio.fixture(autouse=True)
    async def _world(self, tmp_path: Path) -> AsyncIterator[None]:
        self.world = World(tmp_path, 6, BOOTSTRAP_SECRETS)
        self.opened: list[SSHProvider] = []
        await self.world.up()
        yield
        for provider in self.opened:
            await provider.close()
        await self.world.down()

    async def open(self) -> Provider:
        provider = SSHProvider(POOL, self.world.secrets, self.world.objects)
        self.opened.append(provider)
        return provider

    async def let_time_pass(self) -> None:
        self.world.clean()

    async def given_to(self, host: Host) -> bytes | None:
        return (self.world.hosts[host.name].home / "join.sh").read_bytes()

    async def speaks_at(self, host: Host) -> tuple[int, bytes]:
        return self.world.hosts[host.name].port, b"SSH-2.0"

    async def boots(self, host: Host) -> int:
        return self.world.hosts[host.name].reboots


def test_the_fast_world_and_the_lab_are_held_to_the_same_suite() -> None:
    """Neither leaves a test out, replaces one or asks something easier: what is green here means the same there."""
    from tests.hosts.test_ssh_contract import TestSSHOnLabHosts  # noqa: PLC0415  (one class of tests for each module)

    suite = {name for name in vars(ProviderContract) if name.startswith("test_")}
    assert suite
    for which in (TestSSH, TestSSHOnLabHosts):
        assert [name for name in suite if getattr(which, name) is not getattr(ProviderContract, name)] == []
    for name in ("registration", "valid_config", "changed_config", "impossible_config"):
        assert getattr(TestSSH, name) == getattr(TestSSHOnLabHosts, name), name
    replaced = {name for name in vars(TestSSHOnLabHosts) if name in vars(ProviderContract) and name[0] != "_"}
    assert replaced - vars(TestSSH).keys() == {"patience"}, "the lab asks something that the fast world does not"
