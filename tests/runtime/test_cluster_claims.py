"""Two processes never act on the same Cluster, whenever they begin, ask, give back, are held up or die."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from api import names
from controllers.autoscaler.reconciler import AutoscalerReconciler
from controllers.kernel.refs import EVENT, LEASE, Key
from nodewright.runtime.election.claims import Claim, Holder, holder_of, overlap
from nodewright.runtime.election.cluster_claims import MOST_TEXT, ClusterClaims
from nodewright.runtime.election.lease import Terms
from nodewright.runtime.election.lease_options import LeaseOptions
from nodewright.runtime.kube.errors import NoAnswer
from nodewright.runtime.settings import wiring
from nodewright.runtime.settings.cluster_wiring import for_each_cluster
from tests.runtime.country import Country
from tests.runtime.test_autoscaler import scaling_active, size
from tests.runtime.test_many_clusters import MANY, config_maps, groups, kept, waits
from tests.runtime.test_workload_autoscaler import BLUE, PATIENT, bound
from tests.runtime.town import Town

CLUSTERS = [Key("ns", name) for name in "abc"]


class Leases:
    """What all processes see of each other: by name what each live Lease says."""

    def __init__(self) -> None:
        self.written: dict[str, frozenset[Claim]] = {}
        self.answers = True


class OwnLease:
    """``SharedLease`` of one process. What is to be said is written when it is renewed."""

    def __init__(self, name: str, leases: Leases) -> None:
        self.name = name
        self._leases = leases
        self._served: frozenset[Claim] = frozenset()
        self._recorded: frozenset[Claim] = frozenset()

    @property
    def recorded(self) -> frozenset[Claim]:
        return self._recorded

    def serve_also(self, claims: Iterable[Claim]) -> None:
        self._served = frozenset(claims)
        self._recorded &= self._served

    def renew(self) -> None:
        self._leases.written[self.name] = self._recorded = self._served

    async def others(self, claims: Iterable[Claim]) -> dict[Claim, tuple[str, Holder]]:
        if not self._leases.answers:
            raise NoAnswer("nobody answers", sent=False)
        found = {}
        for claim in claims:
            for name, theirs in sorted(self._leases.written.items()):
                if name != self.name and overlap((claim,), theirs):
                    found.setdefault(claim, (name, Holder(f"holder of {name}")))
        return found


class Process:
    def __init__(self, name: str, leases: Leases) -> None:
        self.lease = OwnLease(name, leases)
        self.claims = ClusterClaims(self.lease)

    def serves(self, cluster: Key) -> bool:
        return self.claims.ask("autoscaler", cluster) is None


def steps(luck: Random, count: int) -> Iterator[tuple[str, int, Key]]:
    what = ["ask", "ask", "look", "look", "renew", "renew", "release", "die", "network"]
    for _ in range(count):
        yield luck.choice(what), luck.randrange(3), luck.choice(CLUSTERS)


@pytest.mark.parametrize("seed", range(40))
async def test_no_two_serve_the_same_cluster_and_in_the_end_one_does(seed: int) -> None:
    luck, leases = Random(seed), Leases()
    processes = [Process(str(number), leases) for number in range(3)]
    for what, number, cluster in steps(luck, 150):
        process = processes[number]
        match what:
            case "ask":
                process.serves(cluster)
            case "look":
                await process.claims.look()
            case "renew":
                process.lease.renew()
            case "release":
                process.claims.release("autoscaler", cluster)
            case "die":
                leases.written.pop(str(number), None)
                processes[number] = Process(str(number), leases)
            case "network":
                leases.answers = not leases.answers
        for each in CLUSTERS:
            serving = [p for p in processes if Claim("autoscaler", str(each)) in p.claims._ours]
            assert len(serving) <= 1, f"seed {seed}: two serve {each} after {what}"
    leases.answers = True
    for turn in range(20):
        process = processes[turn % 3]  # whoever comes first to it; in a real process by chance
        for each in CLUSTERS:
            process.serves(each)
        for _ in range(2):
            await process.claims.look()
            process.lease.renew()
        await process.claims.look()
    assert all(any(process.serves(each) for process in processes) for each in CLUSTERS)


async def test_what_another_serves_is_not_asked_for_in_writing() -> None:
    leases = Leases()
    leases.written["old"] = frozenset({Claim("autoscaler", "ns/a")})
    process = Process("new", leases)
    assert not process.serves(CLUSTERS[0])
    await process.claims.look()
    process.lease.renew()
    assert leases.written["new"] == frozenset()
    refused = process.claims.ask("autoscaler", CLUSTERS[0])
    assert refused is not None
    assert (refused.by_another, refused.why) == (True, "holder of old serves it, by the Lease old")


async def test_a_lease_names_as_many_clusters_as_others_read_and_says_so_of_more() -> None:
    process = Process("one", Leases())
    many = [Key("n" * 63, f"{number:03}".rjust(250, "c")) for number in range(300)]
    for each in many:
        process.serves(each)
    for _ in range(2):
        await process.claims.look()
        process.lease.renew()
    await process.claims.look()
    served = [each for each in many if process.serves(each)]
    assert 100 < len(served) < 300
    holder = Holder("h", claims=tuple(process.lease.recorded))
    assert len(holder.annotation()) < MOST_TEXT + 2_000
    lease = {
        "metadata": {"annotations": {names.LEASE_HOLDER_ANNOTATION: holder.annotation()}},
        "spec": {"holderIdentity": "h"},
    }
    assert len(holder_of(lease).claims) == len(process.lease.recorded)
    (refused,) = {found.why for each in many if (found := process.claims.ask("autoscaler", each)) is not None}
    assert "--clusters=SELECTOR" in refused
    process.claims.release("autoscaler", served[0])
    await process.claims.look()
    process.lease.renew()
    await process.claims.look()
    assert sum(process.serves(each) for each in many if each != served[0]) >= len(served)


async def test_a_process_for_one_cluster_keeps_it_and_when_it_ends_the_other_takes_over(
    town: Town, tmp_path: Path
) -> None:
    """By Leases alone: neither knows of the other's options."""
    country = Country(town, tmp_path)
    usual, patient = wiring.reconcilers(), Terms(lease_duration=60.0, renew_deadline=50.0, retry_period=0.1)
    alone = (AutoscalerReconciler(BLUE),)
    many = (*usual, *for_each_cluster((AutoscalerReconciler(MANY),)))
    one = LeaseOptions("alone", "default", patient, "alone", wiring.claims_of(alone))
    all_ = LeaseOptions("many", "default", patient, "many", wiring.claims_of(many))
    town.options = replace(town.options, workloads=PATIENT, bind_pods=True)
    single, shared = (
        replace(town.options, reconcilers=reconcilers, leader_election=lease)
        for reconcilers, lease in ((alone, one), (many, all_))
    )
    async with country.elsewhere("blue", "green") as (blue, green), AsyncExitStack() as stack:
        await groups(town, ("blue", "green"))
        town.options = single
        async with AsyncExitStack() as first:
            await first.enter_async_context(town.controllers())
            await town.until(lambda: config_maps(town) == kept("blue"))
            town.options = shared
            await stack.enter_async_context(town.controllers())
            await waits(green, 1, stack)
            await town.until(lambda: bound(green) == 1)
            await town.until(lambda: _told_of(town, "blue") != "")
            assert "serves it, by the Lease default/alone" in _told_of(town, "blue")
            await waits(blue, 1, stack)
            await town.until(lambda: bound(blue) == 1)
            assert (size(town, "blue"), size(town, "green")) == (1, 1)
            assert _claims(town, "many") >= {Claim("autoscaler", "default/green")}
            assert Claim("autoscaler", "default/blue") not in _claims(town, "many")
        await town.until(lambda: Claim("autoscaler", "default/blue") in _claims(town, "many"))
        assert not scaling_active(town, "blue")


def _told_of(town: Town, cluster: str) -> str:
    found = [
        event["message"]
        for event in town.objects(EVENT)
        if event["reason"] == "AnotherAutoscaler" and event["involvedObject"]["name"] == cluster
    ]
    return str(found[0]) if found else ""


def _claims(town: Town, lease: str) -> frozenset[Claim]:
    return frozenset(
        claim for body in town.objects(LEASE) if body["metadata"]["name"] == lease for claim in holder_of(body).claims
    )
