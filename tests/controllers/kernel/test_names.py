"""Derived names: equal input collides, different owners never do, and all of them are legal."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from api import limits
from controllers.kernel.names import label_value, machine_name, machine_prefix, machine_set_name, ordinal_of

DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
object_names = st.from_regex(r"[a-z]([-a-z0-9]{0,80}[a-z0-9])?", fullmatch=True)


def test_a_namesake_made_later_gets_other_machine_names() -> None:
    assert machine_prefix("pool", "uid-1") != machine_prefix("pool", "uid-2")


def test_the_same_owner_and_ordinal_give_the_same_name() -> None:
    prefix = machine_prefix("pool", "uid-1")
    assert machine_name(prefix, 7) == machine_name(machine_prefix("pool", "uid-1"), 7)
    assert ordinal_of(machine_name(prefix, 7), prefix) == 7


def test_names_that_the_set_did_not_make_have_no_ordinal() -> None:
    prefix = machine_prefix("pool", "uid-1")
    for name in ("pool-7", f"{prefix}x", f"{prefix}07", prefix, f"{prefix}-7", f"{prefix}٣"):
        assert ordinal_of(name, prefix) is None, name


@given(object_names, st.integers(0, 999_999))
def test_every_machine_name_can_be_a_node_name(set_name: str, ordinal: int) -> None:
    name = machine_name(machine_prefix(set_name, "uid-1"), ordinal)
    assert len(name) <= limits.MAX_NODE_NAME
    assert DNS_LABEL.match(name)


@given(object_names)
def test_every_machine_set_name_leaves_room_for_its_machines(deployment: str) -> None:
    name = machine_set_name(deployment, "x" * limits.MAX_TEMPLATE_HASH_LENGTH)
    assert len(name) <= limits.MAX_MACHINESET_NAME
    assert DNS_LABEL.match(name)


def test_a_name_too_long_for_a_label_is_left_out() -> None:
    assert label_value("a" * 63) == "a" * 63
    assert label_value("a" * 64) is None
