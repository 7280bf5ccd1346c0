"""The contract of ``MakesEndpoints`` as tests. A provider that makes endpoints passes if a subclass does.

    class TestMyProvider(EndpointContract):
        cluster_config = {"apiVersion": "my.example/v1", "kind": "MyClusterConfig", "endpoint": {...}}
        def provider(self) -> ...          # a new one each time, as after a crash
        async def a_member(self) -> str    # UID of a Machine that has a host; it may go with the test
        async def lose(self, uid: str)     # that host goes

Every test ends by checking that nothing is left behind. Needs pytest and pytest-asyncio.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from providers.base.endpoints import Endpoint, EndpointMember, EndpointRequest, MakesEndpoints, RebindsEndpoints
from providers.base.errors import ErrorClass, ProviderError

LOOKS = 100
"""How often a test asks until something has come."""


class EndpointContract:
    """Subclass it; see above."""

    cluster_config: ClassVar[Mapping[str, Any]]

    def provider(self) -> MakesEndpoints:
        raise NotImplementedError

    async def a_member(self) -> str:
        raise NotImplementedError

    async def lose(self, uid: str) -> None:
        raise NotImplementedError

    async def let_time_pass(self) -> None:
        await asyncio.sleep(0)

    async def served_by(self, host: str) -> set[str]:
        """UIDs of the Machines to whose hosts ``host`` leads."""
        raise NotImplementedError

    async def left(self, cluster_uid: str) -> int:
        """How many things of the Cluster there are."""
        raise NotImplementedError

    def request(self, *members: EndpointMember, uid: str = "", host: str = "") -> EndpointRequest:
        return EndpointRequest(uid or str(uuid.uuid4()), "contract", "prod", dict(self.cluster_config), members, host)

    async def settled(self, request: EndpointRequest, provider: MakesEndpoints | None = None) -> Endpoint:
        asked = provider or self.provider()
        for _ in range(LOOKS):
            found = await asked.ensure_endpoint(request)
            if not found.waits:
                return found
            await self.let_time_pass()
        raise AssertionError(f"the endpoint still waits: {found.waits}")

    async def removed(self, request: EndpointRequest) -> None:
        provider = self.provider()
        for _ in range(LOOKS):
            if await provider.remove_endpoint(request):
                assert await self.left(request.cluster_uid) == 0
                return
            await self.let_time_pass()
        raise AssertionError("something of the endpoint is left")

    def again(self, request: EndpointRequest, host: str, *members: EndpointMember) -> EndpointRequest:
        return self.request(*members, uid=request.cluster_uid, host=host)

    async def test_an_address_is_there_before_there_is_a_host_and_stays_the_same(self) -> None:
        request, provider = self.request(), self.provider()
        host = ""
        for _ in range(LOOKS):
            host = (await provider.ensure_endpoint(request)).host
            if host:
                break
            await self.let_time_pass()
        assert host
        assert (await self.provider().ensure_endpoint(request)).host == host
        assert (await self.provider().ensure_endpoint(self.again(request, host))).host == host
        await self.removed(request)

    async def test_it_leads_to_a_host_that_comes_and_follows_when_that_one_goes(self) -> None:
        first, second = await self.a_member(), await self.a_member()
        request = self.request(EndpointMember(first))
        host = (await self.settled(request)).host
        assert await self.served_by(host) == {first}
        both = self.again(request, host, EndpointMember(first), EndpointMember(second, ready=True))
        assert (await self.settled(both)).host == host
        assert second in await self.served_by(host)
        await self.lose(second)
        left = self.again(request, host, EndpointMember(first, ready=True))
        assert (await self.settled(left)).host == host
        assert await self.served_by(host) == {first}
        await self.removed(left)
        await self.lose(first)

    async def test_nothing_is_made_twice_by_calls_that_follow_each_other(self) -> None:
        request = self.request()
        await self.provider().ensure_endpoint(request)
        once = await self.left(request.cluster_uid)
        for _ in range(3):
            await self.let_time_pass()
            found = await self.provider().ensure_endpoint(request)
        assert found.host
        assert await self.left(request.cluster_uid) >= once
        assert len({(await self.provider().ensure_endpoint(request)).host for _ in range(2)}) == 1
        await self.removed(request)

    async def test_an_address_that_is_gone_is_reported_and_no_other_takes_its_place(self) -> None:
        request = self.request(host="192.0.2.77")
        with pytest.raises(ProviderError) as caught:
            await self.settled(request)
        assert caught.value.error_class is ErrorClass.NOT_FOUND
        assert "192.0.2.77" in caught.value.message
        await self.removed(request)

    async def test_removal_of_what_is_not_there_is_no_error(self) -> None:
        await self.removed(self.request())

    async def test_an_endpoint_is_handed_to_a_cluster_of_another_management_cluster(self) -> None:
        """Of a provider that can't, Clusters with one can't be moved (``RebindsEndpoints``)."""
        provider, member = self.provider(), await self.a_member()
        if not isinstance(provider, RebindsEndpoints):
            return
        before = self.request(EndpointMember(member))
        host = (await self.settled(before)).host
        after = self.request(EndpointMember(member), host=host)
        known = self.again(before, host, EndpointMember(member))
        await provider.rebind_endpoint(known, after.cluster_uid)
        await provider.rebind_endpoint(known, after.cluster_uid)
        assert await self.left(before.cluster_uid) == 0
        assert (await self.settled(after, self.provider())).host == host
        assert await self.served_by(host) == {member}
        with pytest.raises(ProviderError) as fenced:
            await self.settled(known)
        assert fenced.value.error_class is ErrorClass.NOT_FOUND, "a source that comes back may not take it again"
        await self.removed(after)
        await self.lose(member)
