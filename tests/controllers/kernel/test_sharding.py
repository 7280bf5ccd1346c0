"""Which process serves a Machine: exactly one of those whose selectors divide all labels between them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from api.selectors import parse
from controllers.kernel.refs import MACHINE, Key
from controllers.kernel.sharding import ShardedReconciler, can_be_sharded, shard, sharded
from controllers.machine.reconciler import RECONCILER as MACHINES
from controllers.machineset.reconciler import RECONCILER as MACHINE_SETS
from tests.builders import FakeView, machine, node

LABEL = names.SHARD_LABEL


@pytest.mark.parametrize(
    ("selector", "labels", "served"),
    [
        ("", {}, True),
        ("", {"zone": "a"}, True),
        ("", {LABEL: "blue"}, False),
        (f"{LABEL}=blue", {LABEL: "blue"}, True),
        (f"{LABEL}=blue", {LABEL: "green"}, False),
        (f"{LABEL}=blue", {}, False),
        ("zone=a", {"zone": "a"}, True),
        ("zone=a", {"zone": "a", LABEL: "blue"}, False),
        (f"zone=a,{LABEL} in (blue,green)", {"zone": "a", LABEL: "green"}, True),
    ],
)
def test_a_machine_that_names_its_controller_is_served_by_nobody_else(
    selector: str, labels: dict[str, str], served: bool
) -> None:
    assert shard(parse(selector)).matches(labels) is served


@given(
    zone=st.sampled_from(["", "a", "b", "c"]),
    controller=st.sampled_from(["", "blue", "green"]),
)
def test_selectors_that_divide_all_labels_serve_each_machine_once(zone: str, controller: str) -> None:
    labels = {key: value for key, value in (("zone", zone), (LABEL, controller)) if value}
    shards = ["zone=a", "zone in (b,c)", "zone notin (a,b,c)", f"{LABEL}=blue", f"{LABEL}=green"]
    assert sum(shard(parse(text)).matches(labels) for text in shards) == 1


def test_only_the_machine_controller_is_divided() -> None:
    one, other = sharded((MACHINES, MACHINE_SETS), parse("zone=a"))
    assert isinstance(one, ShardedReconciler)
    assert other is MACHINE_SETS
    assert can_be_sharded(MACHINES)
    assert not can_be_sharded(MACHINE_SETS)
    assert one.reports_unreachable is MACHINES.reports_unreachable, "a lost cluster must be told"
    assert (one.name, one.kind, one.reads, one.wakes) == ("machine", MACHINE, MACHINES.reads, MACHINES.wakes)


def test_whatever_else_a_room_says_of_itself_is_said_by_its_shard() -> None:
    """What the shell looks for on a room must not get lost: it asks the shard, not the room."""
    reconciler = ShardedReconciler(MACHINES, parse("zone=a"))
    its_own = {"hosting_node", "limits", "owner_label", "nodes", "etcd"}  # it decides by that itself
    said = [name for name in dir(MACHINES) if not name.startswith("_") and name not in its_own]
    assert [name for name in said if not hasattr(reconciler, name)] == []
    values = [name for name in said if not callable(getattr(MACHINES, name))]
    assert [name for name in values if getattr(reconciler, name) != getattr(MACHINES, name)] == []


def test_a_machine_of_another_shard_is_as_good_as_not_there() -> None:
    view = FakeView(machine("m-1").labelled(zone="a"))
    here, there = (ShardedReconciler(MACHINES, parse(f"zone={zone}")) for zone in "ab")
    key = Key("default", "m-1")
    need = here.needs(key, view)
    assert need is not None
    assert here.observe(key, view, None) is not None
    assert there.needs(key, view) is None
    assert there.observe(key, view, None) is None


def test_what_a_machine_has_left_behind_is_cleaned_up_by_the_shard_of_those_without_labels() -> None:
    left = (
        node("m-1")
        .annotated(names.NODE_MACHINE_ANNOTATION, "default/m-1")
        .labelled({names.NODE_OWNED_BY_LABEL: "gone"})
    )
    view, key = FakeView(left.not_ready()), Key("default", "m-1")
    rest, blue = (ShardedReconciler(MACHINES, shard(parse(text))) for text in ("", f"{LABEL}=blue"))
    assert rest.observe(key, view, None) is not None
    assert blue.observe(key, view, None) is None
