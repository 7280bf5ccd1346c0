"""A process that stops gives its Lease back, even if it stops while a renewal is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from controllers.kernel.refs import LEASE, Key, Ref
from nodewright.runtime.election.leadership import LeaseLeadership
from nodewright.runtime.election.lease import Terms, spec_of
from nodewright.runtime.election.lease_options import LeaseOptions
from nodewright.runtime.kube.client import KubeClient
from tests.runtime.town import SECONDS, Town

PATIENT = Terms(lease_duration=60.0, renew_deadline=50.0, retry_period=0.01)


class AnswersLost(KubeClient):
    """From ``cut`` on the server does what it is asked, once, and the answer does not come."""

    cut = False
    arrived: asyncio.Event

    async def merge_patch(
        self, target: Ref, patch: Mapping[str, Any], *, subresource: str = "", resource_version: str = ""
    ) -> dict[str, Any]:
        done = await super().merge_patch(target, patch, subresource=subresource, resource_version=resource_version)
        if self.cut:
            self.cut = False
            self.arrived.set()
            await asyncio.Event().wait()
        return done


def leadership(client: KubeClient) -> LeaseLeadership:
    options = LeaseOptions("nodewright", "default", PATIENT, "me")
    return LeaseLeadership(client, options, lambda: datetime.now(UTC))


async def holder(client: KubeClient) -> Any:
    return spec_of(await client.get(LEASE, Key("default", "nodewright"))).get("holderIdentity")


async def test_a_renewal_that_was_cut_off_does_not_keep_the_lease_from_being_released(town: Town) -> None:
    async with AnswersLost(town.connection, "first") as client:
        client.arrived = asyncio.Event()
        mine = leadership(client)
        await mine.acquire()
        client.cut = True
        await asyncio.wait_for(client.arrived.wait(), SECONDS)
        assert await holder(client) == "me"
        await mine.release()
        assert not await holder(client)


async def test_a_lease_that_another_has_taken_meanwhile_is_left_alone(town: Town) -> None:
    async with AnswersLost(town.connection, "first") as client:
        client.arrived = asyncio.Event()
        mine = leadership(client)
        await mine.acquire()
        client.cut = True
        await asyncio.wait_for(client.arrived.wait(), SECONDS)
        taken = {"spec": {"holderIdentity": "another"}}
        await client.merge_patch(Ref(LEASE, Key("default", "nodewright")), taken)
        await mine.release()
        assert await holder(client) == "another"
