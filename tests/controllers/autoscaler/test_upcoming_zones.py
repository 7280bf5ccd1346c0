"""Groups whose Machines go to several failure domains: each new Node is expected where it will really be."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from controllers.autoscaler import observe as autoscaler
from controllers.autoscaler.plan import decide, plan
from controllers.autoscaler.upcoming_zones import domain_order, upcoming_zones_of
from controllers.kernel import machine_facts
from controllers.kernel.actions import Scale
from controllers.kernel.conditions import format_time
from controllers.kernel.refs import MACHINE, MACHINE_SET, Key
from controllers.machineset.creation import places, spread_over_domains
from controllers.machineset.observe import observe
from providers.base.contract import Shape
from tests.builders.view import NOW, FakeView
from tests.controllers.autoscaler.fleet import Fleet
from tests.controllers.autoscaler.town import view_of
from tests.examples import usually

ZONE = "topology.kubernetes.io/zone"
CONFIG = {"apiVersion": "x/v1", "kind": "Config"}
SHAPE = Shape({"cpu": "4", "memory": "8Gi"}, failure_domain_label=ZONE)
DOMAINS = ["a", "b", "c"]


@pytest.fixture
def fleet() -> Fleet:
    return web()


def web() -> Fleet:
    """A group over three failure domains, without Machines."""
    fleet = Fleet()
    body = fleet.group("web", 0, 9)
    body["spec"]["failureDomains"] = DOMAINS
    body["spec"]["template"]["spec"] = {"providerConfig": {"value": CONFIG}}
    fleet.sets["web"]["spec"]["failureDomains"] = DOMAINS
    return fleet


def look(fleet: Fleet) -> autoscaler.Observed:
    return autoscaler.observe(view_of(fleet).shaped(CONFIG, SHAPE), fleet.options)


def order(fleet: Fleet) -> list[str]:
    """The domains as the set takes them."""
    (state,) = look(fleet).cluster.groups
    assert state.zone_order is not None
    return list(state.zone_order.open)


def grow(fleet: Fleet) -> int:
    """What the group is scaled by; its Machines are made as a MachineSet makes them."""
    (state,) = look(fleet).cluster.groups
    asked = [action.replicas for action in plan(look(fleet)).actions() if isinstance(action, Scale)]
    before = fleet.size("web")
    for replicas in asked:
        fleet.deployments["web"]["spec"]["replicas"] = replicas
    assert state.zone_order is not None
    for domain in state.zone_order.after(state.unmade, fleet.size("web") - before):
        fleet.machine("web")["spec"]["failureDomain"] = domain
    return fleet.size("web") - before


def join(fleet: Fleet, domain: str) -> None:
    machine = next(
        each
        for each in fleet.machines.values()
        if each["spec"]["failureDomain"] == domain and not each["status"].get("nodeRef")
    )
    fleet.join(machine)["metadata"]["labels"][ZONE] = domain


def spread_over_zones(app: str) -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "minDomains": 3,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }


def test_pods_that_are_spread_over_zones_make_a_group_grow_from_nothing(fleet: Fleet) -> None:
    for index in range(3):
        pod = fleet.pod(f"p-{index}", topologySpreadConstraints=[spread_over_zones("web")])
        pod["metadata"]["labels"] = {"app": "web"}
    assert grow(fleet) == 3
    assert grow(fleet) == 0, "they are on their way"
    for domain in order(fleet):
        join(fleet, domain)
        assert grow(fleet) == 0, "the others still are"


@pytest.mark.parametrize(("zone_order", "nodes"), [(0, 1), (1, 2), (2, 3)])
def test_a_zone_gets_a_node_when_it_is_its_turn(fleet: Fleet, zone_order: int, nodes: int) -> None:
    fleet.pod("p", nodeSelector={ZONE: order(fleet)[zone_order]})
    assert grow(fleet) == nodes
    assert grow(fleet) == 0


def test_a_zone_that_no_machine_goes_to_makes_nothing_grow(fleet: Fleet) -> None:
    fleet.pod("p", nodeSelector={ZONE: "elsewhere"})
    assert grow(fleet) == 0


def test_pods_that_must_not_share_a_zone_get_one_each(fleet: Fleet) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": ZONE}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for index in range(4):
        fleet.pod(f"p-{index}", affinity=apart)["metadata"]["labels"] = {"app": "web"}
    assert grow(fleet) == 3, "the fourth finds no zone"


def test_pods_to_which_the_zone_is_nothing_are_counted_as_ever(fleet: Fleet) -> None:
    fleet.come(20, "1")
    fleet.pod("p", nodeSelector={ZONE: order(fleet)[2]})
    assert grow(fleet) == 6, "five for the twenty, and the sixth is in the third zone"
    assert grow(fleet) == 0


def test_a_group_with_nodes_is_expected_where_its_next_machine_goes(fleet: Fleet) -> None:
    first, second, _ = order(fleet)
    fleet.pod("p", nodeSelector={ZONE: first})
    grow(fleet)
    join(fleet, first)
    fleet.schedule()
    fleet.pod("q", nodeSelector={ZONE: second})
    assert grow(fleet) == 1


def test_nothing_is_expected_of_a_group_that_is_short_of_a_host_somewhere(fleet: Fleet) -> None:
    rest = {"name": "a", "reason": "StockOut", "until": format_time(fleet.now + timedelta(minutes=5))}
    fleet.sets["web"]["status"] = {"restingFailureDomains": [rest]}
    assert sorted(order(fleet)) == ["b", "c"], "a domain that rests takes none"
    fleet.sets["old"] = {**fleet.sets["web"], "metadata": {**fleet.sets["web"]["metadata"], "name": "old", "uid": "o"}}
    (state,) = look(fleet).cluster.groups
    assert state.zone_order is None, "which set makes the next Machine is not known"


def test_a_set_that_was_not_told_of_the_domains_yet_is_waited_for(fleet: Fleet) -> None:
    fleet.sets["web"]["spec"]["failureDomains"] = ["a", "b"]
    (state,) = look(fleet).cluster.groups
    assert state.zone_order is None


def test_what_a_person_says_of_the_zone_counts(fleet: Fleet) -> None:
    fleet.deployments["web"]["metadata"]["annotations"][f"{names.CAPACITY_PREFIX}labels"] = f"{ZONE}=said"
    fleet.pod("p", nodeSelector={ZONE: "said"})
    asked = [action.replicas for action in plan(look(fleet)).actions() if isinstance(action, Scale)]
    assert asked == [1]


@given(
    st.lists(
        st.tuples(st.sampled_from(["1", "2", "3"]), st.sampled_from([*DOMAINS, None]), st.booleans()),
        min_size=1,
        max_size=8,
    )
)
@usually(15)
def test_it_grows_until_all_fit_and_no_further(wanted: list[tuple[str, str | None, bool]]) -> None:
    """Whoever asks for a zone is never asked for twice, while Nodes come one by one."""
    fleet = web()
    fleet.deployments["web"]["metadata"]["annotations"][names.AUTOSCALER_MAX_ANNOTATION] = "40"
    for index, (cpu, zone, even) in enumerate(wanted):
        spec: dict[str, Any] = {"nodeSelector": {ZONE: zone}} if zone else {}
        if even and not zone:
            spec["topologySpreadConstraints"] = [spread_over_zones("even")]
        fleet.pod(f"p-{index}", cpu, **spec)["metadata"]["labels"] = {"app": "even" if even and not zone else "any"}
    looks = iter(range(5))
    while grow(fleet):
        next(looks)
    assert 1 <= fleet.size("web") <= 3 * len(wanted)
    for machine in list(fleet.machines.values()):
        join(fleet, machine["spec"]["failureDomain"])
        assert grow(fleet) == 0
    assert not decide(look(fleet).cluster).scale_up.left, "nobody is left without a place"


@given(
    st.permutations(DOMAINS),
    st.lists(st.sampled_from([*DOMAINS, "gone"]), max_size=7),
    st.sets(st.sampled_from(DOMAINS)),
    st.integers(1, 8),
    st.uuids(),
)
@usually(60)
def test_the_machine_set_makes_them_where_they_are_expected(
    domains: list[str], there: list[str], resting: set[str], number: int, uid: Any
) -> None:
    """Its own room is asked, on the same world."""
    until = format_time(NOW + timedelta(minutes=5))
    body = {
        "apiVersion": MACHINE_SET.api_version,
        "kind": MACHINE_SET.name,
        "metadata": {"namespace": "ns", "name": "s", "uid": str(uid)},
        "spec": {
            "replicas": len(there) + number,
            "failureDomains": domains,
            "selector": {"matchLabels": {"app": "s"}},
            "template": {"metadata": {"labels": {"app": "s"}}, "spec": {}},
        },
        "status": {
            "restingFailureDomains": [{"name": each, "reason": "StockOut", "until": until} for each in sorted(resting)]
        },
    }
    owner = {"kind": "MachineSet", "name": "s", "uid": str(uid), "controller": True}
    machines = [
        {
            "apiVersion": MACHINE.api_version,
            "kind": MACHINE.name,
            "metadata": {
                "namespace": "ns",
                "name": f"m-{index}",
                "uid": f"m-{index}",
                "labels": {"app": "s"},
                "ownerReferences": [owner],
                "creationTimestamp": format_time(NOW),
            },
            "spec": {"failureDomain": domain},
        }
        for index, domain in enumerate(there)
    ]
    view = FakeView(body, *machines)
    observed = observe(Key("ns", "s"), view)
    assert observed is not None
    made = places(observed, spread_over_domains(observed), range(100, 100 + number))
    facts = [machine_facts.read(machine) for machine in machines]
    zone_order = upcoming_zones_of(domain_order(body, (), view=view), ZONE, machines=facts, sets=[body], now=view.now)
    assert zone_order is not None
    assert zone_order.after(0, number) == [made[ordinal] for ordinal in sorted(made)]
