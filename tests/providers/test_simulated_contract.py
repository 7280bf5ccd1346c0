"""The simulated provider keeps the contract in each of its personalities: it is a verified fake."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from providers.base.contract import Host, Provider, Registration
from providers.base.contract_tests import ProviderContract
from providers.simulated.config import API_VERSION, KIND
from providers.simulated.provider import registration_for
from providers.simulated.worlds import Worlds
from tests.providers.clocks import Clock

CONFIG: dict[str, Any] = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "cloud": {"name": "contract", "zones": {"a": 50, "b": 50}},
}


class _Simulated(ProviderContract):
    valid_config: ClassVar = CONFIG
    impossible_config: ClassVar = {**CONFIG, "zone": "nowhere"}
    patience = 60

    @pytest.fixture(autouse=True)
    def _world(self) -> None:
        self.clock = Clock()
        self.worlds = Worlds(self.clock)
        self.registration: Registration = registration_for(self.worlds, self.clock.sleep)  # type: ignore[misc]

    async def let_time_pass(self) -> None:
        self.clock.forward(0.2)

    async def boots(self, host: Host) -> int:
        found = self.worlds.all["contract"].host(host.machine_uid)
        assert found is not None
        return found.reboot.number if found.reboot is not None else 0


class TestInPlace(_Simulated):
    changed_config: ClassVar = {**CONFIG, "cpus": 4}


class TestReplace(_Simulated):
    valid_config: ClassVar = {**CONFIG, "updates": "Replace"}
    changed_config: ClassVar = {**CONFIG, "updates": "Replace", "cpus": 4}


class TestDrainThenInPlace(_Simulated):
    valid_config: ClassVar = {**CONFIG, "updates": "DrainThenInPlace"}
    changed_config: ClassVar = {**CONFIG, "updates": "DrainThenInPlace", "cpus": 4}


class TestWithALaggingList(_Simulated):
    """The cloud shows new hosts late; the provider makes up for it."""

    valid_config: ClassVar = {**CONFIG, "cloud": {**CONFIG["cloud"], "listDelaySeconds": 30}}

    async def open(self) -> Provider:
        """One object: what it remembers of its own creations is what makes up for the lag."""
        if not hasattr(self, "_opened"):
            self._opened = await super().open()
        return self._opened
