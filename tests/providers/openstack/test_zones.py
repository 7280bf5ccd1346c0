"""Which zone a server goes to: as a person would lay out a burst by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

from providers.base.contract import HostIdentity, HostRequest
from providers.openstack import ownership_tags
from providers.openstack.config import parse
from providers.openstack.inventory import Inventory
from providers.openstack.zones import AVOIDED, Zones
from tests.providers.openstack.scene import CONFIG

WANTED = ("az1", "az2", "az3")


class Clock:
    """A loop's clock that is set by hand."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def request(uid: str, pool: str = "pool-a", **changes: Any) -> HostRequest:
    return HostRequest(HostIdentity(uid, "test", f"{pool}-{uid}", "story"), {}, "hash-1", **changes)


def server(wanted: HostRequest, zone: str, **changes: Any) -> dict[str, Any]:
    metadata = ownership_tags.metadata_of(wanted, parse(CONFIG))
    redact = {"id": f"s-{wanted.identity.machine_uid}", "status": "ACTIVE", "metadata": metadata}
    return {**redact, "OS-EXT-AZ:availability_zone": zone, **changes}


def inventory(*servers: dict[str, Any], began: float = 100.0) -> Inventory:
    return Inventory(began, {ownership_tags.uid_of_server(one): (one,) for one in servers})


def test_a_burst_that_shares_one_census_is_spread_evenly() -> None:
    zones, nothing_yet = Zones(Clock()), inventory()
    chosen = Counter(zones.choose(request(str(number)), WANTED, nothing_yet) for number in range(30))
    assert chosen == dict.fromkeys(WANTED, 10)


def test_what_is_being_made_counts_until_a_census_shows_it_and_once_only() -> None:
    zones = Zones(Clock())
    first, second, third = request("1"), request("2"), request("3")
    assert zones.choose(first, WANTED, inventory()) == "az1"
    assert zones.choose(second, WANTED, inventory(server(first, "az1"))) == "az2"
    both = inventory(server(first, "az1"), server(second, "az2"))
    assert zones.choose(third, WANTED, both) == "az3"


def test_a_creation_that_came_to_nothing_is_forgotten_with_the_next_census() -> None:
    clock = Clock()
    zones = Zones(clock)
    assert zones.choose(request("1"), WANTED, inventory()) == "az1"
    clock.time = 101.0
    zones.made("1")
    assert zones.choose(request("2"), WANTED, inventory(began=100.5)) == "az2", "the census is older than the end"
    zones.made("2")
    assert zones.choose(request("3"), WANTED, inventory(began=102.0)) == "az1"


def test_who_tries_again_counts_once() -> None:
    zones = Zones(Clock())
    for _ in range(3):
        assert zones.choose(request("1"), WANTED, inventory()) == "az1"


def test_each_pool_is_spread_whatever_others_have_in_a_zone() -> None:
    zones = Zones(Clock())
    others = [server(request(f"o{number}", "pool-b"), "az1") for number in range(9)]
    chosen = [zones.choose(request(str(number)), WANTED, inventory(*others)) for number in range(3)]
    assert sorted(chosen) == ["az1", "az2", "az3"], "else the whole pool would share two zones"
    assert chosen[0] != "az1", "among equals the emptier zone"


def test_two_sets_of_one_template_that_come_in_turn_are_spread_each_for_itself() -> None:
    zones = Zones(Clock())
    turns = [request(str(number), pool) for number in range(6) for pool in ("pool-a", "pool-b")]
    chosen = [zones.choose(one, ("az1", "az2"), inventory()) for one in turns]
    assert Counter(chosen[::2]) == Counter(chosen[1::2]) == {"az1": 3, "az2": 3}


def test_servers_that_go_do_not_count() -> None:
    zones = Zones(Clock())
    going = server(request("1"), "az1", **{"OS-EXT-STS:task_state": "deleting"})
    staying = server(request("2"), "az2")
    assert zones.choose(request("3"), ("az1", "az2"), inventory(going, staying)) == "az1"


def test_a_failure_domain_wins_and_counts() -> None:
    zones = Zones(Clock())
    assert zones.choose(request("1", failure_domain="az1"), (), inventory()) == "az1"
    assert zones.choose(request("2"), ("az1", "az2"), inventory()) == "az2"
    assert zones.choose(request("3"), (), inventory()) == ""


def test_a_zone_without_a_place_comes_last_for_a_while() -> None:
    clock = Clock()
    zones = Zones(clock)
    zones.found_full("az1")
    there = [server(request(f"t{number}"), "az2") for number in range(5)]
    assert zones.choose(request("1"), ("az1", "az2"), inventory(*there)) == "az2"
    clock.time += AVOIDED
    assert zones.choose(request("2"), ("az1", "az2"), inventory(*there)) == "az1"
