"""Each Machine of a set is in exactly one bucket."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from api.names import PRESERVE_UNTIL_ANNOTATION
from controllers.kernel.machine_facts import read
from controllers.kernel.members import partition, removal
from controllers.kernel.names import Ordinals, machine_name, machine_prefix
from tests.builders import NOW, machine
from tests.builders.clock import ago

PREFIX = machine_prefix("pool", "uid-pool")


def test_reserved_machines_that_are_not_visible_are_pending() -> None:
    visible = read(machine(machine_name(PREFIX, 3)).ready().build())
    members = partition([visible], Ordinals(5, frozenset({3, 4})), PREFIX, NOW)
    assert members.pending == (4,)
    assert members.existing == 2


def test_those_chosen_to_go_are_leaving_until_they_are_seen_deleting() -> None:
    chosen, going = machine("chosen").ready(), machine("going").ready().deleting()
    ordinals = Ordinals(leaving=frozenset({"chosen", "going"}))
    members = partition([read(chosen.build()), read(going.build())], ordinals, PREFIX, NOW)
    assert [m.key.name for m in members.leaving] == ["chosen"]
    assert [m.key.name for m in members.deleting] == ["going"]
    assert members.existing == 0


def test_pending_machines_go_first_and_the_youngest_of_them() -> None:
    ready = read(machine(machine_name(PREFIX, 0)).ready().build())
    members = partition([ready], Ordinals(4, frozenset({1, 2, 3})), PREFIX, NOW)
    found = removal(members, 2, "Random")
    assert found.pending == (3, 2)
    assert found.victims == ()


def test_only_so_many_are_preserved_beside_the_replicas() -> None:
    """An annotation of the template must not let a set make Machines for ever."""
    kept = [machine(f"m-{n}").failed().annotated(PRESERVE_UNTIL_ANNOTATION, ago(-60)).created(n) for n in range(5)]
    members = partition([read(m.build()) for m in kept], Ordinals(), PREFIX, NOW)
    assert [m.key.name for m in members.preserved] == ["m-4", "m-3", "m-2"]
    assert members.existing == 2


@given(
    st.lists(st.sampled_from(["active", "leaving", "deleting", "deleting and leaving", "preserved"]), max_size=8),
    st.frozensets(st.integers(0, 12), max_size=6),
)
def test_the_partition_is_total_and_disjoint(kinds: list[str], reserved: frozenset[int]) -> None:
    machines, leaving = [], set()
    for number, kind in enumerate(kinds):
        builder = machine(machine_name(PREFIX, number)).ready()
        if "deleting" in kind:
            builder.deleting()
        if "leaving" in kind:
            leaving.add(machine_name(PREFIX, number))
        if kind == "preserved":
            builder.failed().annotated(PRESERVE_UNTIL_ANNOTATION, ago(-60))
        machines.append(read(builder.build()))
    members = partition(machines, Ordinals(13, reserved, frozenset(leaving)), PREFIX, NOW)
    buckets = (*members.active, *members.leaving, *members.deleting, *members.preserved)
    assert sorted(m.key.name for m in buckets) == sorted(m.key.name for m in machines)
    assert set(members.pending) == {ordinal for ordinal in reserved if ordinal >= len(kinds)}
