"""The one total order in which Machines go."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.kernel.deletions import in_order
from controllers.kernel.machine_facts import MachineFacts, read
from tests.builders import machine
from tests.builders.objects import MachineBuilder

YEAR = 365 * 24 * 3600


def facts(builder: MachineBuilder) -> MachineFacts:
    return read(builder.build())


def order(*builders: MachineBuilder, policy: str = "Random") -> list[str]:
    return [found.key.name for found in in_order([facts(builder) for builder in builders], policy)]


def unhealthy(name: str) -> MachineBuilder:
    return machine(name).condition("HealthCheckSucceeded", "False", "UnhealthyNode")


FIRST_THEN_SECOND = {
    "deleting before annotated": (machine("z").ready().deleting(), machine("a").ready().marked_for_deletion()),
    "annotated before failed": (machine("z").ready().marked_for_deletion(), machine("a").failed()),
    "annotated by Cluster API's key counts too": (
        machine("z").ready().annotated("cluster.x-k8s.io/delete-machine"),
        machine("a").failed(),
    ),
    "failed before not ready": (machine("z").failed(), machine("a").not_ready()),
    "without a node before not ready": (machine("z").pending(), machine("a").not_ready()),
    "failed with a node before not ready": (machine("z").on_node("n").failed(), machine("a").not_ready()),
    "unhealthy and not ready before not ready": (unhealthy("z").not_ready(), machine("a").not_ready()),
    "not ready before unhealthy and ready all the same": (machine("z").not_ready(), unhealthy("a").ready()),
    "not ready before failed and ready all the same": (machine("z").not_ready(), machine("a").failed().ready()),
    "unhealthy and ready before ready": (unhealthy("z").ready(), machine("a").ready().priority(100)),
    "not ready before ready": (machine("z").not_ready(), machine("a").ready()),
    "higher delete priority before lower": (machine("z").ready().priority(5), machine("a").ready()),
    "negative priority protects": (machine("z").ready(), machine("a").ready().priority(-1)),
    "health goes before the user's priority": (machine("z").not_ready(), machine("a").ready().priority(100)),
    "an unreadable priority is none": (machine("z").ready().priority(1), machine("a").ready().priority("soon")),
}


@pytest.mark.parametrize(("first", "second"), FIRST_THEN_SECOND.values(), ids=FIRST_THEN_SECOND.keys())
@pytest.mark.parametrize("policy", ["Random", "Newest", "Oldest"])
def test_order(first: MachineBuilder, second: MachineBuilder, policy: str) -> None:
    assert order(second, first, policy=policy) == ["z", "a"]


def test_an_empty_mark_is_no_mark() -> None:
    assert order(machine("a").ready().marked_for_deletion(""), machine("b").not_ready()) == ["b", "a"]


def test_oldest_and_newest_compare_exact_ages() -> None:
    younger, older = machine("younger").ready().created(3600), machine("older").ready().created(3601)
    assert order(younger, older, policy="Oldest") == ["older", "younger"]
    assert order(older, younger, policy="Newest") == ["younger", "older"]


def test_machines_of_three_years_are_told_apart_and_never_tie_with_a_marked_one() -> None:
    """Peers squeeze age through an exponential that is exactly 1.0 after about a year."""
    old, older = machine("old").ready().created(3 * YEAR), machine("older").ready().created(3 * YEAR + 1)
    marked = machine("marked").ready().created(60).marked_for_deletion()
    assert order(old, older, marked, policy="Oldest") == ["marked", "older", "old"]


def test_random_is_by_identity_and_so_repeats() -> None:
    builders = [machine(f"m-{number}").ready() for number in range(20)]
    first = order(*builders)
    assert first == order(*reversed(builders))
    assert first != sorted(first)
    others = [machine(f"m-{number}").ready() for number in range(20)]
    for builder in others:
        builder.body["metadata"]["uid"] = f"another-{builder.body['metadata']['name']}"
    assert order(*others) != first, "the same names with other UIDs go in another order"


def test_an_unknown_policy_means_random() -> None:
    builders = [machine(f"m-{number}").ready() for number in range(5)]
    assert order(*builders, policy="") == order(*builders, policy="Random")


def where(*domains: str, policy: str = "Oldest") -> str:
    """The domains in the order in which Machines of them go; the first one is the oldest."""
    builders = [machine(f"m-{n}").ready().created(1000 - n).in_domain(domain) for n, domain in enumerate(domains)]
    found = in_order([facts(builder) for builder in builders], policy, ("a", "b", "c"))
    return "".join(m.failure_domain for m in found)


SPREAD = {
    "from the fullest domain": ("abbb", "bbab"),
    "of equally full ones by the policy": ("abc", "abc"),
    "what is outside of all domains goes first": ("aaz", "zaa"),
    "then evenly": ("aaabbb", "ababab"),
}


@pytest.mark.parametrize(("there", "want"), SPREAD.values(), ids=SPREAD.keys())
def test_the_fullest_failure_domain_gives_first(there: str, want: str) -> None:
    assert where(*there) == want


def test_health_and_priority_go_before_balance() -> None:
    full = [machine(f"a-{n}").ready().in_domain("a") for n in range(3)]
    sick, chosen = machine("sick").not_ready().in_domain("b"), machine("chosen").ready().priority(1).in_domain("c")
    found = in_order([facts(builder) for builder in (*full, chosen, sick)], "Random", ("a", "b", "c"))
    assert [m.key.name for m in found][:2] == ["sick", "chosen"]


looks = st.sampled_from(
    [
        lambda m: m.ready(),
        lambda m: m.ready().created(9),
        lambda m: m.not_ready(),
        lambda m: m.failed(),
        lambda m: m.pending(),
        lambda m: m.ready().marked_for_deletion(),
        lambda m: m.ready().priority(3),
        lambda m: m.ready().deleting(),
        lambda m: m.ready().in_domain("a"),
        lambda m: m.ready().in_domain("b"),
    ]
)
domains = st.sampled_from([(), ("a", "b")])


@given(st.lists(looks, min_size=2, max_size=4), st.sampled_from(["Random", "Newest", "Oldest"]), domains)
def test_the_order_is_total(chosen: list, policy: str, over: tuple[str, ...]) -> None:  # type: ignore[type-arg]
    """However they are listed, they go in one order."""
    machines = [facts(look(machine(f"m-{number}"))) for number, look in enumerate(chosen)]
    assert len({tuple(m.key.name for m in in_order(p, policy, over)) for p in permutations(machines)}) == 1
