"""Two candidates and one Lease, against the embedded control plane: one works, the other takes over, never both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from controllers.kernel.refs import LEASE, MACHINE, Key, Ref
from nodewright.controlplane.app.faults import Match
from nodewright.controlplane.values import ApiError as ServerError
from nodewright.runtime.kube.errors import NotLeadingError
from nodewright.runtime.leadership import LeadershipLostError, LeaseOptions
from nodewright.runtime.lease import Terms, spec_of
from nodewright.runtime.manager import Manager, run_controllers
from providers.base.registry import Registry
from providers.simulated.provider import registration_for
from tests.runtime.town import SECONDS, Town

LEASES = "leases.coordination.k8s.io"
PATIENT = Terms(lease_duration=60.0, renew_deadline=50.0, retry_period=0.1)
"""For handing over, which waits for no deadline, however slow the machine is."""
SHORT = Terms(lease_duration=2.0, renew_deadline=1.0, retry_period=0.1)


class Contender:
    """The controllers as one of several candidates; ``task`` ends as ``run_controllers`` does."""

    def __init__(self, town: Town, identity: str, terms: Terms) -> None:
        self.stop, self.ready = asyncio.Event(), asyncio.Event()
        self.managers: list[Manager] = []
        options = replace(town.options, leader_election=LeaseOptions("nodewright", "default", terms, identity))
        self.task = asyncio.create_task(
            run_controllers(town.connection, options, stop=self.stop, ready=self.ready, on_manager=self.managers.append)
        )

    @property
    def standing_by(self) -> bool:
        return bool(self.managers) and self.managers[0].synced and not self.managers[0].started

    async def leads(self) -> None:
        async with asyncio.timeout(SECONDS):
            await self.ready.wait()

    async def end(self) -> None:
        self.stop.set()
        await asyncio.wait_for(self.task, SECONDS)


@asynccontextmanager
async def contending(town: Town, identity: str, terms: Terms = PATIENT) -> AsyncIterator[Contender]:
    contender = Contender(town, identity, terms)
    try:
        yield contender
    finally:
        contender.stop.set()
        await asyncio.wait({contender.task}, timeout=SECONDS)


def the_lease(town: Town) -> Any:
    leases = town.objects(LEASE)
    return spec_of(leases[0]) if leases else {}


def _sweepers() -> int:
    return sum(task.get_name() == "orphan hosts" for task in asyncio.all_tasks())


async def test_one_works_and_the_other_takes_over_when_it_stops(town: Town) -> None:
    async with contending(town, "first") as first:
        await first.leads()
        await town.machine_set("ms", 3)
        await town.until(lambda: town.ready() == 3)
        async with contending(town, "second") as second:
            await town.until(lambda: second.standing_by)
            assert the_lease(town)["holderIdentity"] == "first"
            assert not second.ready.is_set()
            assert _sweepers() == 1, "an orphan host is told once, and by the leader"
            await first.end()
            await second.leads()
            assert _sweepers() == 1
            assert the_lease(town)["holderIdentity"] == "second"
            assert the_lease(town)["leaseTransitions"] == 1
            await town.scale("ms", 5)
            await town.until(lambda: town.ready() == 5)
            assert len(town.objects(MACHINE)) == town.hosts() == 5
            await second.end()
    assert the_lease(town)["holderIdentity"] == "", "who stops in good order lets go"


async def test_a_leader_that_can_not_renew_stops_and_says_so(town: Town) -> None:
    async with contending(town, "first", SHORT) as first:
        await first.leads()
        town.plane.faults.answer(
            ServerError(500, "InternalError", "etcd"),
            Match(verb="patch", resource=LEASES),
            times=10_000,
        )
        with pytest.raises(LeadershipLostError, match="could not be renewed within 1 s"):
            await asyncio.wait_for(first.task, SECONDS)
        assert the_lease(town)["holderIdentity"] == "first", "a Lease that is lost is not written any more"


async def test_who_loses_the_lease_waits_for_no_call_that_is_under_way(town: Town) -> None:
    """Others may begin soon: a call that never ends must not keep the process, whatever grace it would have else."""
    creating = asyncio.Event()

    async def sleep(_seconds: float) -> None:
        task = asyncio.current_task()
        if task is not None and task.get_name().startswith("create "):
            creating.set()
            await asyncio.Event().wait()

    town.options = replace(town.options, registry=Registry.of(registration_for(town.worlds, sleep)), grace=3600.0)
    async with contending(town, "first") as first:
        await first.leads()
        await town.machine_set("ms", 1)
        await asyncio.wait_for(creating.wait(), SECONDS)
        await _names_somebody_else(town)
        with pytest.raises(LeadershipLostError):
            await asyncio.wait_for(first.task, SECONDS)
    assert town.hosts() == 0


async def _names_somebody_else(town: Town) -> None:
    await town.client.merge_patch(Ref(LEASE, Key("default", "nodewright")), {"spec": {"holderIdentity": "somebody"}})


async def test_a_leader_whose_lease_names_another_stops_at_once(town: Town) -> None:
    async with contending(town, "first") as first:
        await first.leads()
        await _names_somebody_else(town)
        with pytest.raises(LeadershipLostError, match="somebody holds it now"):
            await asyncio.wait_for(first.task, SECONDS)


async def test_a_lease_that_somebody_deletes_is_made_again(town: Town) -> None:
    async with contending(town, "first") as first:
        await first.leads()
        await town.client.delete(Ref(LEASE, Key("default", "nodewright")))
        await town.until(lambda: the_lease(town).get("holderIdentity") == "first")
        await first.end()


async def test_a_renewal_whose_answer_is_lost_costs_nothing(town: Town) -> None:
    async with contending(town, "first") as first:
        await first.leads()
        town.plane.faults.lose_answer(Match(verb="patch", resource=LEASES), times=2)
        await town.until(lambda: town.plane.faults.hits == 2)
        before = the_lease(town)["renewTime"]
        await town.until(lambda: the_lease(town)["renewTime"] != before)
        await first.end()


async def test_without_leadership_no_write_leaves_the_process(town: Town) -> None:
    leads = True
    client = town.client.fenced(lambda: leads)
    await town.machine_set("ms", 0)
    leads = False
    writes = town.plane.store.resource_version
    for attempt in (
        client.create(LEASE, {"metadata": {"name": "l", "namespace": "default"}}),
        client.merge_patch(Ref(MACHINE, Key("default", "m")), {}),
        client.delete(Ref(MACHINE, Key("default", "m"))),
        client.evict(Ref(MACHINE, Key("default", "m"))),
    ):
        with pytest.raises(NotLeadingError):
            await attempt
    assert town.plane.store.resource_version == writes
    assert (await client.list_page(MACHINE)).items == []
