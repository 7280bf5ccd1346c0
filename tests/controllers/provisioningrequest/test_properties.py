"""Whatever happens to requests, Nodes and the process: nobody keeps a part, no room is booked twice or forgotten."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api import provisioning_names
from controllers.autoscaler import record as records
from controllers.autoscaler.record import Record
from controllers.kernel.refs import Key
from tests.controllers.provisioningrequest.office import Office
from tests.examples import usually

GROUPS = {"a": 4, "b": 3}
CPUS = {"big": 3, "half": 2, "small": 1}
NODE = 4

ask = st.tuples(st.just("ask"), st.sampled_from(sorted(CPUS)), st.integers(1, 6))
check = st.tuples(st.just("check"), st.sampled_from(sorted(CPUS)), st.integers(1, 4))
dies = st.tuples(st.just("dies"), st.just(""), st.integers(0, 4))
fails = st.tuples(st.just("fails"), st.sampled_from(sorted(GROUPS)), st.integers(1, 2))
joins = st.tuples(st.just("joins"), st.sampled_from(sorted(GROUPS)), st.integers(1, 4))
cancel = st.tuples(st.just("cancel"), st.just(""), st.integers(0, 5))
waits = st.tuples(st.just("waits"), st.just(""), st.integers(1, 12))
consume = st.tuples(st.just("consume"), st.just(""), st.integers(0, 5))
scales = st.tuples(st.just("scales"), st.just(""), st.just(0))
STORY = st.lists(st.one_of(ask, check, dies, fails, joins, cancel, waits, consume, scales), max_size=10)


@usually(6)
@given(STORY)
def test_whatever_happens_nobody_keeps_a_part_and_no_room_is_booked_twice(story: list[tuple[str, str, int]]) -> None:
    _lived(story)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(STORY)
def test_whatever_happens_in_very_many_stories(story: list[tuple[str, str, int]]) -> None:
    _lived(story)


def _lived(story: list[tuple[str, str, int]]) -> None:
    office = _begun()
    for what, which, number in story:
        _happens(office, what, which, number)
        _no_room_twice(office)
        _within_bounds(office)
    _comes_to_rest(office)


def _begun() -> Office:
    office = Office()
    for name, most in GROUPS.items():
        office.fleet.group(name, most=most)
    for name, cpu in CPUS.items():
        office.template(name, cpu=str(cpu))
    return office


def _happens(office: Office, what: str, which: str, number: int) -> None:
    kept = {name: office.details(name) for name in office.requests if _holds(office, name)}
    match what:
        case "ask" | "check":
            class_name = provisioning_names.ATOMIC_SCALE_UP if what == "ask" else provisioning_names.CHECK_CAPACITY
            office.request(f"r-{office.fleet.now:%d-%H%M%S}", (which, number), class_name=class_name)
            office.round()
        case "dies":
            office.round(actions=number)
        case "fails":
            office.make(which, fails=number)
            office.round()
        case "joins":
            office.make(which)
            office.join(which, number)
            office.round()
        case "cancel":
            for name in sorted(office.requests)[number : number + 1]:
                del office.requests[name]
                kept.pop(name, None)
            office.round()
        case "waits":
            office.fleet.now += timedelta(minutes=number)
            office.round()
        case "consume":
            _consume(office, number)
            office.round()
        case _:
            office.autoscale()
    for name, before in kept.items():
        if _holds(office, name) and before.get(provisioning_names.BOOKED_NODES_DETAIL):
            assert office.booked(name), "a restart keeps bookings"


def _consume(office: Office, number: int) -> None:
    """A pod of some booked request is bound to one of its Nodes that has room."""
    for name in [each for each in sorted(office.requests) if _holds(office, each)][number : number + 1]:
        cpu = CPUS[office.requests[name]["spec"]["podSets"][0]["podTemplateRef"]["name"]]
        for node in sorted(office.booked(name) & office.fleet.nodes.keys()):
            if _used(office)[node] + cpu <= NODE:
                office.consumer(name, f"pod-{name}-{len(office.fleet.pods)}", cpu=str(cpu), node=node)
                return


def _holds(office: Office, name: str) -> bool:
    over = any(office.said(name, each)[0] == "True" for each in ("Failed", "BookingExpired", "CapacityRevoked"))
    return office.said(name)[0] == "True" and not over


def _used(office: Office) -> Counter[str]:
    used: Counter[str] = Counter()
    for pod in office.fleet.pods.values():
        cpu = int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])
        used[pod["spec"].get("nodeName", "")] += cpu
    return used


def _no_room_twice(office: Office) -> None:
    """All bookings together, and all pods, have room on the Nodes that they name, by cores at least."""
    wanted, offered = 0, 0
    nodes: set[str] = set()
    for name, body in office.requests.items():
        if _holds(office, name):
            (pods,) = body["spec"]["podSets"]
            taken = sum(1 for pod in office.fleet.pods if pod.startswith(f"pod-{name}-"))
            wanted += max(0, pods["count"] - taken) * CPUS[pods["podTemplateRef"]["name"]]
            nodes |= office.booked(name)
    there = nodes & office.fleet.nodes.keys()
    offered = sum(NODE - _used(office)[node] for node in there)
    assert wanted <= offered, (wanted, offered)


def _within_bounds(office: Office) -> None:
    for name, most in GROUPS.items():
        assert 0 <= office.fleet.size(name) <= most


def _comes_to_rest(office: Office) -> None:
    """Sets make what they are asked for and give up what fails; then nothing is written, and nobody has a part."""
    for _ in range(12):
        office.fleet.settle()
        office.round()
        office.autoscale()
    office.fleet.settle()
    office.round()
    assert not office.plan().steps or _next_try(office)
    for name in office.requests:
        details = office.details(name)
        assert provisioning_names.LEAVING_MACHINES_DETAIL not in details
        assert provisioning_names.PROVISIONING_SINCE_DETAIL not in details, "it is all there, or given up"
        assert (office.said(name)[0] == "True") or provisioning_names.BOOKED_NODES_DETAIL not in details


def _next_try(office: Office) -> bool:
    """What is written is another try that failed, not a change of sizes."""
    return not any(type(action).__name__ in ("Scale", "Delete") for action in office.plan().actions())


word = st.from_regex(r"[a-z][a-z0-9-]{0,30}", fullmatch=True)


@given(
    st.lists(word, unique=True, max_size=50), st.dictionaries(word, st.integers(0, 9999), max_size=5), st.integers(0, 9)
)
def test_what_is_written_down_is_read_back(nodes: list[str], groups: dict[str, int], retries: int) -> None:
    leaving = tuple(Key("ns", node) for node in nodes[:3])
    kept = Record(tuple(nodes), groups, None, leaving, retries)
    assert records.read(records.write(kept)) == kept


def test_many_long_names_go_on_in_further_details_and_come_back() -> None:
    nodes = tuple(f"a-group-with-a-rather-long-name-{number:06}" for number in range(5000))
    details = records.write(Record(nodes))
    assert len(details) > 5
    assert all(len(text) <= provisioning_names.MAX_DETAIL for text in details.values())
    assert records.read(details).nodes == nodes
    assert all(records.is_owned(key) for key in details)


def test_details_that_can_not_be_read_count_as_not_there() -> None:
    assert (
        records.read(
            {provisioning_names.RETRIES_DETAIL: "many", provisioning_names.NODE_GROUPS_DETAIL: "x a=b", "other": "1"}
        )
        == Record()
    )
    assert records.read("nonsense") == Record()
