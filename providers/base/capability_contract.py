"""Contract tests of what providers can do besides (``capabilities``), a part of ``providers.base.contract_tests``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from providers.base.capabilities import (
    LONGEST_CONSOLE,
    Channel,
    ReachesPorts,
    RebindsHosts,
    RebootsHosts,
    RunsScripts,
    ShowsConsole,
    ShowsQuotas,
)
from providers.base.contract import Host, HostState, Provider
from providers.base.errors import ErrorClass, ProviderError


class CapabilityContract:
    """What ``ProviderContract`` brings: requests, ``until_running``, a new process, and the time that passes."""

    a_request: Callable[..., Any]
    until_running: Callable[..., Awaitable[Host]]
    open: Callable[[], Awaitable[Provider]]
    let_time_pass: Callable[[], Awaitable[None]]
    _until_gone: Callable[..., Awaitable[tuple[Host, ...]]]

    async def boots(self, host: Host) -> int | None:
        """How often the host has been booted; None where the world can't tell."""
        return None

    async def speaks_at(self, host: Host) -> tuple[int, bytes]:
        """A port at the host's localhost, and how what listens there begins. Of a provider that reaches ports."""
        raise NotImplementedError

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

    async def test_a_host_is_handed_to_a_machine_of_another_management_cluster(self, provider: Provider) -> None:
        """Of a provider that can't, Machines can't be moved (``RebindsHosts``)."""
        if not isinstance(provider, RebindsHosts):
            return
        request, stranger = self.a_request(), self.a_request().identity
        await provider.create(request)
        before, old = await self.until_running(provider, request), request.identity
        new = replace(self.a_request().identity, name=old.name, management_cluster="another")
        with pytest.raises(ProviderError) as refused:
            await provider.rebind(before, stranger, new)
        assert refused.value.error_class is ErrorClass.CONFLICT
        await provider.rebind(before, old, new)
        await provider.rebind(before, old, new)
        assert await provider.get(old.machine_uid) is None
        after = await provider.get(new.machine_uid)
        assert after == replace(before, machine_uid=new.machine_uid, management_cluster="another")
        reopened = await self.open()
        assert [host.id for host in await reopened.list() if host.machine_uid == new.machine_uid] == [before.id]
        with pytest.raises(ProviderError) as fenced:
            await reopened.rebind(before, old, stranger)  # type: ignore[attr-defined]  # as the first, it can
        assert fenced.value.error_class is ErrorClass.CONFLICT, "a source that comes back may not take it again"

    async def test_no_host_is_handed_to_a_machine_that_has_one(self, provider: Provider) -> None:
        if not isinstance(provider, RebindsHosts):
            return
        first, second = self.a_request(), self.a_request()
        for request in (first, second):
            await provider.create(request)
        host = await self.until_running(provider, first)
        await self.until_running(provider, second)
        with pytest.raises(ProviderError) as refused:
            await provider.rebind(host, first.identity, second.identity)
        assert refused.value.error_class is ErrorClass.CONFLICT

    async def test_a_console_is_text_of_a_bounded_length(self, provider: Provider) -> None:
        """Of providers that show one (``ShowsConsole``); a host that is gone has none, or is not found."""
        if not isinstance(provider, ShowsConsole):
            pytest.skip("it shows no console")
        request = self.a_request()
        await provider.create(request)
        host = await self.until_running(provider, request)
        shown = await provider.console(host)
        assert isinstance(shown, str)
        assert len(shown) <= LONGEST_CONSOLE
        await provider.delete(host)
        await self._until_gone(provider, {host.machine_uid})
        (left,) = await asyncio.gather(provider.console(host), return_exceptions=True)
        gone = isinstance(left, ProviderError) and left.error_class is ErrorClass.NOT_FOUND
        assert gone or left == ""

    async def test_quotas_say_how_much_of_a_limit_is_used(self, provider: Provider) -> None:
        """Of providers that can tell (``ShowsQuotas``); what has no limit is left out."""
        if not isinstance(provider, ShowsQuotas):
            pytest.skip("it shows no quotas")
        shown = await provider.quotas()
        assert len({quota.resource for quota in shown}) == len(shown)
        assert all(quota.resource and quota.used >= 0 and quota.limit >= 0 for quota in shown)

    async def test_a_port_of_a_host_is_reached_at_its_own_localhost(self, provider: Provider) -> None:
        """Of providers that have a way there (``ReachesPorts``)."""
        if not isinstance(provider, ReachesPorts):
            pytest.skip("it reaches no ports")
        request = self.a_request()
        await provider.create(request)
        host = await self.until_running(provider, request)
        port, begins = await self.speaks_at(host)
        channels = await asyncio.gather(provider.connect(host, port), provider.connect(host, port))
        for channel in channels:
            assert (await channel.read()).startswith(begins)
        channels[0].close()
        await channels[1].write(b"nonsense\r\n" * 4096)
        while await _rest(channels[1]):
            pass
        with pytest.raises(ProviderError):
            await provider.connect(host, 9)
        with pytest.raises(ProviderError) as refused:
            await provider.connect(replace(host, id=f"{host.id}-of-another"), port)
        assert refused.value.error_class is ErrorClass.NOT_FOUND

    async def test_a_script_runs_on_its_host_and_what_it_prints_comes_back(self, provider: Provider) -> None:
        """Of providers that run some (``RunsScripts``)."""
        if not isinstance(provider, RunsScripts):
            pytest.skip("it runs no scripts")
        request = self.a_request()
        await provider.create(request)
        host = await self.until_running(provider, request)
        assert await provider.run_script(host, "echo one; echo two >&2; printf three", 30.0) == "one\nthree"
        with pytest.raises(ProviderError, match="what went wrong"):
            await provider.run_script(host, "echo fine; echo what went wrong >&2; exit 3", 30.0)
        with pytest.raises(ProviderError) as refused:
            await provider.run_script(replace(host, id=f"{host.id}-of-another"), "echo", 30.0)
        assert refused.value.error_class is ErrorClass.NOT_FOUND


async def _rest(channel: Channel) -> bytes:
    """b"" also where the host cuts it off."""
    try:
        return await channel.read()
    except OSError:
        return b""
