"""Contract tests of providers that can reboot hosts; a part of ``providers.base.contract_tests``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from providers.base.capabilities import RebootsHosts
from providers.base.contract import Host, HostState, Provider
from providers.base.errors import ErrorClass, ProviderError


class RebootContract:
    """What ``ProviderContract`` brings: requests, ``until_running``, a new process, and the time that passes."""

    a_request: Callable[..., Any]
    until_running: Callable[..., Awaitable[Host]]
    open: Callable[[], Awaitable[Provider]]
    let_time_pass: Callable[[], Awaitable[None]]

    async def boots(self, host: Host) -> int | None:
        """How often the host has been booted; None where the world can't tell."""
        return None

    async def until_rebooted(self, provider: Provider, host: Host, attempt: str) -> Host:
        for _ in range(600):
            found = await provider.get(host.machine_uid)
            assert found is not None
            if found.rebooted == attempt and found.state is HostState.RUNNING:
                return found
            await self.let_time_pass()
            await asyncio.sleep(0)
        raise AssertionError(f"the host was not seen to be rebooted for {attempt}: {found}")

    async def test_a_reboot_is_seen_and_the_host_stays_the_same(self, provider: Provider) -> None:
        """Of providers that can reboot (``RebootsHosts``)."""
        if not isinstance(provider, RebootsHosts):
            return
        request = self.a_request()
        await provider.create(request)
        host = await self.until_running(provider, request)
        assert host.rebooted == ""
        await provider.reboot(host, "attempt-1")
        after = await self.until_rebooted(provider, host, "attempt-1")
        assert replace(after, rebooted="") == host

    async def test_one_attempt_reboots_once_whoever_repeats_it(self, provider: Provider) -> None:
        if not isinstance(provider, RebootsHosts):
            return
        request = self.a_request()
        await provider.create(request)
        host = await self.until_running(provider, request)
        before = await self.boots(host)
        await asyncio.gather(provider.reboot(host, "one"), provider.reboot(host, "one"), return_exceptions=True)
        await provider.reboot(host, "one")
        await self.until_rebooted(provider, host, "one")
        other = await self.open()
        assert isinstance(other, RebootsHosts)
        await other.reboot(host, "one")
        await self.until_rebooted(other, host, "one")
        once = await self.boots(host)
        assert before is None or once == before + 1
        await other.reboot(host, "two")
        await self.until_rebooted(other, host, "two")
        assert before is None or await self.boots(host) == before + 2

    async def test_a_host_that_is_gone_is_not_rebooted(self, provider: Provider) -> None:
        if not isinstance(provider, RebootsHosts):
            return
        request = self.a_request()
        await provider.create(request)
        host = await self.until_running(provider, request)
        with pytest.raises(ProviderError) as refused:
            await provider.reboot(replace(host, id=f"{host.id}-of-another"), "attempt")
        assert refused.value.error_class is ErrorClass.NOT_FOUND
