"""Where the next Machines go, and how uneven that may get."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.kernel.failure_domains import choose, domains_of, is_even, rotation_of
from tests.builders import cluster, machine_set
from tests.builders.objects import Builder, MachineSetBuilder


def pool(**spec: object) -> MachineSetBuilder:
    builder = machine_set("pool")
    builder.spec.update(spec)
    return builder


def pinned(builder: MachineSetBuilder) -> MachineSetBuilder:
    builder.template["spec"]["failureDomain"] = "x"
    return builder


def of_cluster(*domains: object) -> Builder:
    builder = cluster("c")
    builder.spec["failureDomains"] = list(domains)
    return builder


DOMAINS: dict[str, tuple[Builder, Builder | None, tuple[str, ...]]] = {
    "nobody names any": (pool(), cluster("c"), ()),
    "the set's own": (pool(failureDomains=["a", "b"]), None, ("a", "b")),
    "its Cluster's": (pool(), of_cluster("a", "b"), ("a", "b")),
    "the set's own before its Cluster's": (pool(failureDomains=["z"]), of_cluster("a", "b"), ("z",)),
    "an empty list of its own spreads nothing": (pool(failureDomains=[]), of_cluster("a", "b"), ()),
    "a template that names one means that one": (pinned(pool()), of_cluster("a", "b"), ()),
    "what slipped past the schema of a Cluster is none": (pool(), of_cluster("a", 7), ()),
}


@pytest.mark.parametrize(("body", "its_cluster", "want"), DOMAINS.values(), ids=DOMAINS.keys())
def test_domains(body: Builder, its_cluster: Builder | None, want: tuple[str, ...]) -> None:
    assert domains_of(body.build(), its_cluster.build() if its_cluster else None) == want


CHOSEN = {
    "one after the other": ({}, 4, ["a", "b", "c", "a"]),
    "the emptiest first": ({"a": 2, "b": 0, "c": 1}, 3, ["b", "b", "c"]),
    "Machines elsewhere don't count": ({"z": 9}, 1, ["a"]),
    "none": ({"a": 1}, 0, []),
}


@pytest.mark.parametrize(("loads", "number", "want"), CHOSEN.values(), ids=CHOSEN.keys())
def test_choice(loads: dict[str, int], number: int, want: list[str]) -> None:
    assert choose(("a", "b", "c"), loads, number) == want


def test_without_domains_nothing_is_chosen() -> None:
    assert choose((), {}, 3) == []


@given(st.lists(st.sampled_from("abcd"), max_size=30), st.integers(0, 60))
def test_what_is_added_never_widens_the_gap_by_more_than_one(there: list[str], number: int) -> None:
    domains, before = ("a", "b", "c"), Counter(there)
    after = before + Counter(choose(domains, before, number))
    gap = max(after[d] for d in domains) - min(after[d] for d in domains)
    gap_before = max(before[d] for d in domains) - min(before[d] for d in domains)
    assert gap <= max(gap_before, 1)
    assert sum(after.values()) == len(there) + number


def test_each_owner_begins_somewhere_and_always_there() -> None:
    domains = ("a", "b", "c")
    firsts = {rotation_of(domains, f"uid-{number}")[0] for number in range(50)}
    assert firsts == {"a", "b", "c"}
    assert rotation_of(domains, "uid-1") == rotation_of(domains, "uid-1")
    assert sorted(rotation_of(domains, "uid-1")) == ["a", "b", "c"]
    assert rotation_of((), "uid-1") == ()


EVEN = {
    "nothing at all": ({}, True),
    "equal": ({"a": 2, "b": 2}, True),
    "one more": ({"a": 2, "b": 3}, True),
    "two more": ({"a": 1, "b": 3}, False),
    "one that is elsewhere": ({"a": 1, "b": 1, "z": 1}, False),
}


@pytest.mark.parametrize(("loads", "want"), EVEN.values(), ids=EVEN.keys())
def test_even(loads: dict[str, int], want: bool) -> None:
    assert is_even(("a", "b"), loads) is want
