"""Which hosts are orphans, and when nothing may be concluded."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.orphans.sweep import GRACE, HostList, Observed, Sighting, Sweep, sweep
from providers.base.contract import Host, HostState
from tests.builders import NOW

LONG = timedelta(days=1)
HERE, ELSEWHERE = "uid-of-this-cluster", "uid-of-another-cluster"


def host(uid: str, born: timedelta | None = LONG, state: HostState = HostState.RUNNING) -> Host:
    born_at = None if born is None else NOW - born
    return Host(f"h-{uid}", uid, f"host-{uid}", "", state, "", created_at=born_at, management_cluster=HERE)


def listed(*hosts: Host, ago: float = 10, problem: str = "") -> HostList:
    return HostList("cloud", hosts, NOW - timedelta(seconds=ago), problem)


KNOWN = [host(f"k{n}") for n in range(5)]
ORPHAN = host("lost")
SEEN = {("cloud", "h-lost"): Sighting(NOW - GRACE, NOW - timedelta(minutes=1), 5)}


def world(*hosts: Host, **changes: object) -> Observed:
    """Long enough at work to conclude something."""
    base = Observed(
        NOW, (listed(*KNOWN, *hosts),), frozenset(h.machine_uid for h in KNOWN), NOW - LONG, dict(SEEN), HERE
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def names(found: Sweep) -> list[str]:
    return [orphan.host.id for orphan in found.due]


def test_a_host_that_long_and_often_was_nobodys_is_an_orphan() -> None:
    found = sweep(world(ORPHAN))
    assert names(found) == ["h-lost"]
    assert "carries the UID lost, which no Machine has had in 6 lists" in found.due[0].why


def test_a_host_of_a_machine_is_none() -> None:
    assert sweep(world(ORPHAN, machines=frozenset({"lost", *(h.machine_uid for h in KNOWN)}))).orphans == ()


NOT_YET = {
    "seen for the first time": world(ORPHAN, memory={}),
    "seen in one list only, looked at again": world(
        ORPHAN, memory={("cloud", "h-lost"): Sighting(NOW - LONG, NOW - timedelta(seconds=10))}
    ),
    "not for long enough": world(
        ORPHAN, memory={("cloud", "h-lost"): Sighting(NOW - GRACE / 2, NOW - timedelta(minutes=1), 9)}
    ),
    "a host that was made a moment ago": world(host("lost", timedelta(minutes=1))),
    "going already": world(host("lost", state=HostState.DELETING)),
}


@pytest.mark.parametrize("observed", NOT_YET.values(), ids=NOT_YET.keys())
def test_not_yet(observed: Observed) -> None:
    assert sweep(observed).orphans == ()


FROZEN = {
    "the list failed": world(lists=(listed(*KNOWN, ORPHAN, problem="unreachable"),)),
    "the list is old": world(lists=(listed(*KNOWN, ORPHAN, ago=400),)),
    "never listed": world(lists=(HostList("cloud", (*KNOWN, ORPHAN)),)),
    "the API server is away": world(ORPHAN, followed_since=None),
    "the API server came back a moment ago": world(ORPHAN, followed_since=NOW - timedelta(minutes=5)),
    "most hosts are unknown": world(ORPHAN, *(host(f"x{n}") for n in range(5))),
    "all hosts are unknown": world(lists=(listed(ORPHAN),)),
    "no Machine is known (MCM#657)": world(ORPHAN, machines=frozenset()),
}


@pytest.mark.parametrize("observed", FROZEN.values(), ids=FROZEN.keys())
def test_frozen(observed: Observed) -> None:
    found = sweep(observed)
    assert found.orphans == ()
    assert list(found.frozen) == ["cloud"]
    assert found.memory == {}, "what was seen before does not count when it goes on"


@pytest.mark.parametrize(("frozen", "for_a_person"), [("most hosts are unknown", True), ("all hosts are unknown", True),
                                                       ("the API server came back a moment ago", False)])  # fmt: skip
def test_only_what_will_not_clear_up_by_itself_is_for_a_person_to_judge(frozen: str, for_a_person: bool) -> None:
    assert bool(sweep(FROZEN[frozen]).strange) is for_a_person


def test_a_list_from_before_the_machines_were_read_says_nothing() -> None:
    steady = NOW - timedelta(minutes=11)
    late = HostList("cloud", (*KNOWN, ORPHAN), steady - timedelta(seconds=1))
    assert sweep(world(lists=(late,), followed_since=steady)).orphans == ()


def test_a_frozen_scope_does_not_freeze_another() -> None:
    other = HostList("other", (ORPHAN,), NOW - timedelta(hours=1))
    found = sweep(world(lists=(other, listed(*KNOWN, ORPHAN))))
    assert names(found) == ["h-lost"]
    assert list(found.frozen) == ["other"]


def test_a_sweep_removes_at_most_a_tenth_the_longest_lost_first() -> None:
    lost = [host(f"l{n}") for n in range(10)]
    known = [host(f"k{n}") for n in range(30)]
    memory = {("cloud", one.id): Sighting(NOW - GRACE - timedelta(hours=n), NOW - GRACE) for n, one in enumerate(lost)}
    found = sweep(
        world(lists=(listed(*known, *lost),), machines=frozenset(h.machine_uid for h in known), memory=memory)
    )
    assert len(found.orphans) == 10
    assert names(found) == ["h-l9", "h-l8", "h-l7", "h-l6"]


def test_it_takes_two_lists_and_the_grace_from_nothing() -> None:
    memory, now = {}, NOW
    for minute in range(20):
        now = NOW + timedelta(minutes=minute)
        at = HostList("cloud", (*KNOWN, ORPHAN), now - timedelta(seconds=5))
        found = sweep(world(lists=(at,), now=now, memory=memory))
        memory = dict(found.memory)
        assert bool(found.due) == (minute >= 15), minute


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 3600), st.integers(0, 5)), max_size=30),
    st.integers(0, 1200),
    st.integers(0, 600),
)
def test_nobodys_host_is_removed_that_a_machine_has(
    hosts: list[tuple[bool, int, int]], followed: int, list_age: int
) -> None:
    made = [host(f"u{n}", timedelta(seconds=age)) for n, (_, age, _) in enumerate(hosts)]
    machines = frozenset(f"u{n}" for n, (known, _, _) in enumerate(hosts) if known)
    memory = {
        ("cloud", f"h-u{n}"): Sighting(NOW - timedelta(minutes=10 * lists), NOW - timedelta(minutes=lists), lists + 1)
        for n, (_, _, lists) in enumerate(hosts)
    }
    began: datetime = NOW - timedelta(seconds=list_age)
    observed = Observed(
        NOW, (HostList("cloud", tuple(made), began),), machines, NOW - timedelta(seconds=followed), memory
    )
    found = sweep(observed)
    assert not {orphan.host.machine_uid for orphan in found.orphans} & machines
    assert len(found.due) <= max(1, len(made) // 10)
    assert set(found.due) <= set(found.orphans)
    if found.due:
        assert 2 * len(machines) >= len(made)


def test_a_host_of_another_cluster_is_nobody_s_business_here() -> None:
    """Two clusters in one account: neither removes the other's hosts, nor is held up by them."""
    foreign = [replace(host(f"x{n}"), management_cluster=ELSEWHERE) for n in range(50)]
    memory = {("cloud", one.id): SEEN["cloud", "h-lost"] for one in foreign} | SEEN
    found = sweep(world(ORPHAN, *foreign, memory=memory))
    assert [orphan.host.id for orphan in found.orphans] == ["h-lost"]
    assert names(found) == ["h-lost"]
    assert found.strange == {}


@pytest.mark.parametrize(
    "changes",
    [{"cluster": ""}, {"lists": (listed(*KNOWN, replace(ORPHAN, management_cluster="")),)}],
    ids=["our own mark is not known", "the host has none"],
)
def test_a_host_that_can_not_be_told_from_another_cluster_s_is_told_and_never_removed(
    changes: dict[str, object],
) -> None:
    found = sweep(world(ORPHAN, **changes))
    assert [orphan.host.id for orphan in found.orphans] == ["h-lost"]
    assert found.due == ()
    assert "it is not removed by itself" in found.orphans[0].why


def test_the_host_of_a_machine_that_was_moved_here_counts_as_known() -> None:
    moved = [replace(one, management_cluster=ELSEWHERE) for one in KNOWN]
    found = sweep(world(lists=(listed(*moved, ORPHAN),)))
    assert names(found) == ["h-lost"]
    assert found.strange == {}
