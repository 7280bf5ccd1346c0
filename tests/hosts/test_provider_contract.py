"""The lab's provider keeps the contract with hosts that really boot."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import pytest

from hack.hosts.lab import Lab
from hack.hosts.provider.provider import API_VERSION, KIND, registration
from providers.base.contract import Host
from providers.base.contract_tests import ProviderContract

pytestmark = [pytest.mark.hosts, pytest.mark.slow]


class TestLab(ProviderContract):
    registration = registration
    valid_config: ClassVar = {}
    impossible_config: ClassVar = {}
    patience = 300

    @pytest.fixture(autouse=True)
    def _lab(self, lab: Lab) -> None:
        self._made = lab
        config = {"apiVersion": API_VERSION, "kind": KIND, "lab": str(lab.folder)}
        self.valid_config = config  # type: ignore[misc]
        self.impossible_config = {**config, "image": "nowhere"}  # type: ignore[misc]

    async def let_time_pass(self) -> None:
        await asyncio.sleep(0.1)

    async def given_to(self, host: Host) -> bytes | None:
        """What cloud-init's NoCloud source finds on the host's disk."""
        seen = self._made.find(host.machine_uid)
        assert seen is not None
        seed = self._made.guest(seen.record).root / "var/lib/cloud/seed/nocloud/user-data"
        return await asyncio.to_thread(seed.read_bytes)
