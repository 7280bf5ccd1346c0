"""Two candidates and one Lease, against the embedded control plane: one works, the other takes over, never both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from api.names import LEASE_HOLDER_ANNOTATION
from controllers.kernel.refs import LEASE, MACHINE, Key, Ref
from nodewright import __version__
from nodewright.apiserver.app.faults import Match
from nodewright.apiserver.values import ApiError as ServerError
from nodewright.runtime.election.claims import Holder
from nodewright.runtime.election.leadership import HeldElsewhereError, LeadershipLostError
from nodewright.runtime.election.lease import Terms, spec_of
from nodewright.runtime.election.lease_options import LeaseOptions
from nodewright.runtime.election.process_identity import this_process
from nodewright.runtime.fleet.findings import findings_of
from nodewright.runtime.kube.errors import NotLeadingError
from nodewright.runtime.manager import Manager, run_controllers
from nodewright.runtime.settings.wiring import claims_of, reconcilers
from providers.base.registry import Registry
from providers.simulated.provider import registration_for
from tests.runtime.town import SECONDS, Town

LEASES = "leases.coordination.k8s.io"
PATIENT = Terms(lease_duration=60.0, renew_deadline=50.0, retry_period=0.1)
"""For handing over, which waits for no deadline, however slow the machine is."""
SHORT = Terms(lease_duration=5.0, renew_deadline=3.0, retry_period=0.1)


class Contender:
    """The controllers as one of several candidates; ``task`` ends as ``run_controllers`` does."""

    def __init__(self, town: Town, lease: LeaseOptions) -> None:
        self.stop, self.ready = asyncio.Event(), asyncio.Event()
        self.managers: list[Manager] = []
        self.waits_for: list[str] = []
        lease = replace(lease, on_wait=self.waits_for.append)
        options = replace(town.options, leader_election=lease)
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
async def contending(town: Town, identity: str, terms: Terms = PATIENT, **more: Any) -> AsyncIterator[Contender]:
    contender = Contender(
        town, LeaseOptions(more.pop("name", "nodewright"), more.pop("namespace", "default"), terms, identity, **more)
    )
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
        leads = asyncio.ensure_future(first.ready.wait())
        # On a machine that is busy for three seconds it may have lost the Lease before, for the same reason.
        await asyncio.wait({leads, first.task}, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
        leads.cancel()
        town.plane.faults.answer(
            ServerError(500, "InternalError", "etcd"),
            Match(verb="patch", resource=LEASES),
            times=10_000,
        )
        with pytest.raises(LeadershipLostError, match="could not be renewed within 3 s"):
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


ALL, MACHINES, SETS = (
    claims_of([reconciler for reconciler in reconcilers() if reconciler.name in names])
    for names in (("machine", "machineset"), ("machine",), ("machineset",))
)


async def test_a_lease_of_another_name_excludes_what_it_overlaps_with(town: Town) -> None:
    """`run --controllers=machine` beside `run`: whatever their options are, one of them works."""
    async with contending(town, "first", name="nodewright-machine", claims=MACHINES, command="one") as first:
        await first.leads()
        async with contending(town, "second", claims=ALL) as second:
            await town.until(lambda: bool(second.waits_for))
            assert "one (process" in second.waits_for[0]
            assert "holds the Lease default/nodewright-machine and serves machine" in second.waits_for[0]
            assert not second.ready.is_set()
            async with contending(town, "third", name="nodewright-machineset", claims=SETS) as third:
                await third.leads()
                await first.end()
                await town.until(lambda: "nodewright-machineset" in second.waits_for[-1])
                await third.end()
            await second.leads()
            await second.end()


async def test_of_many_that_begin_at_once_those_that_overlap_never_work_together(town: Town) -> None:
    """Each takes its own Lease, so only the look at the others' keeps them apart."""
    async with AsyncExitStack() as stack:
        crowd = [
            await stack.enter_async_context(contending(town, f"p{number}", name=f"l-{number}", claims=ALL))
            for number in range(4)
        ]
        for _ in crowd:
            await town.until(lambda: any(each.ready.is_set() and not each.stop.is_set() for each in crowd))
            working = [each for each in crowd if each.managers and each.managers[0].may_act()]
            assert len(working) == 1
            await working[0].end()


async def test_a_process_that_is_not_to_wait_says_who_works_and_ends(town: Town) -> None:
    async with contending(town, "first", claims=MACHINES, name="nodewright-machine") as first:
        await first.leads()
        for name in ("nodewright", "nodewright-machine"):
            async with contending(town, "second", claims=ALL, name=name, waits=False) as second:
                with pytest.raises(HeldElsewhereError, match="holds the Lease default/nodewright-machine"):
                    await asyncio.wait_for(second.task, SECONDS)
        await first.end()


async def test_a_lease_whose_holder_has_certainly_ended_is_taken_at_once(town: Town) -> None:
    """After a kill on the same machine nobody waits for the Lease to run out (here: ten minutes)."""
    dead = Holder("dead", "nodewright run", "here", {**this_process(), "startTime": 1}, ALL)
    for name in ("nodewright", "nodewright-machine"):
        await _hold(town, name, dead)
    async with contending(town, "second", claims=ALL) as second:
        await second.leads()
        assert second.waits_for == []
        await second.end()


async def test_the_namespace_of_the_lease_is_made_if_it_is_missing(town: Town) -> None:
    async with contending(town, "first", namespace="nodewright-system", claims=ALL) as first:
        await first.leads()
        assert town.objects(LEASE)[0]["metadata"]["namespace"] == "nodewright-system"
        await first.end()


async def test_a_leader_whose_lease_was_deleted_stops_if_another_works_by_then(town: Town) -> None:
    async with contending(town, "first", claims=ALL) as first:
        await first.leads()
        other = Holder("other", "nodewright run", "elsewhere", {}, MACHINES)
        await _hold(town, "nodewright-machine", other)
        await town.client.delete(Ref(LEASE, Key("default", "nodewright")))
        with pytest.raises(LeadershipLostError, match="it was deleted, and"):
            await asyncio.wait_for(first.task, SECONDS)


async def _hold(town: Town, name: str, holder: Holder) -> None:
    meta = {"name": name, "namespace": "default", "annotations": {LEASE_HOLDER_ANNOTATION: holder.annotation()}}
    spec = {"holderIdentity": holder.identity, "leaseDurationSeconds": 600, "renewTime": "2026-01-01T00:00:00.000000Z"}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}
    await town.client.create(LEASE, body)


async def test_a_paused_account_and_the_version_stand_in_the_lease_and_leave_it_with_their_holder(town: Town) -> None:
    async with contending(town, "first") as first:
        await first.leads()
        lease = town.objects(LEASE)[0]
        await town.until(lambda: findings_of(town.objects(LEASE)[0]).version == __version__)
        renewed = lease["spec"]["renewTime"]
        first.managers[0].finder.orphans = lambda: (_ for _ in ()).throw(ValueError("a fault"))
        await town.until(lambda: the_lease(town)["renewTime"] > renewed)
        await town.until(lambda: findings_of(town.objects(LEASE)[0]).version == "")
        assert the_lease(town)["holderIdentity"] == "first", "a fault in what is only news costs no Lease"
        await first.end()
