"""Which processes must not work at the same time, by what their Leases say that they serve."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from api.selectors import parse
from controllers.autoscaler.options import AutoscalerOptions
from controllers.kernel.refs import Key
from nodewright.cli.election import ControllerOptions, work_named
from nodewright.runtime.election.claims import Claim, Holder, disjoint, holder_of, overlap

ALL = work_named("*", "").claims
MACHINES = work_named("machine", "").claims
REST = work_named("*,-machine", "").claims
EAST = work_named("machine", "zone=east").claims
WEST = work_named("machine", "zone=west").claims
BOTH = work_named("machine", "zone in (east,west)").claims
GPU = work_named("machine", "gpu").claims
BLUE = work_named("machine", f"{names.SHARD_LABEL}=blue").claims
TEAM_A = work_named("*", "", namespace="team-a").claims
TEAM_B = work_named("*", "", namespace="team-b").claims
HOME = work_named("autoscaler", "").claims
AWAY = work_named(
    "autoscaler", "", options=ControllerOptions(lambda: AutoscalerOptions(cluster=Key("ns", "prod")))
).claims


@pytest.mark.parametrize(
    ("one", "other", "exclude"),
    [
        (ALL, ALL, True),
        (ALL, MACHINES, True),
        (ALL, REST, True),
        (MACHINES, REST, False),
        (MACHINES, EAST, True),
        (REST, EAST, False),
        (EAST, WEST, False),
        (EAST, BOTH, True),
        (EAST, GPU, True),
        (MACHINES, BLUE, False),
        (EAST, BLUE, False),
        (ALL, TEAM_A, True),
        (TEAM_A, TEAM_B, False),
        (EAST, TEAM_A, True),
        (HOME, AWAY, False),
        (ALL, HOME, False),
    ],
)
def test_two_processes_exclude_one_another_if_they_may_serve_the_same_object(
    one: tuple[Claim, ...], other: tuple[Claim, ...], exclude: bool
) -> None:
    assert bool(overlap(one, other)) is exclude
    assert bool(overlap(other, one)) is exclude


_VALUES = st.sampled_from(["a", "b", "3", "7"])
_LISTS = st.lists(_VALUES, min_size=1, max_size=3).map(lambda values: f"({','.join(values)})")
_REQUIREMENTS = st.one_of(
    st.builds("{}={}".format, st.sampled_from("xy"), _VALUES),
    st.builds("{}!={}".format, st.sampled_from("xy"), _VALUES),
    st.builds("{} in {}".format, st.sampled_from("xy"), _LISTS),
    st.builds("{} notin {}".format, st.sampled_from("xy"), _LISTS),
    st.sampled_from(["x", "!x", "y", "!y", "x>4", "x<4"]),
)
_SELECTORS = st.lists(_REQUIREMENTS, max_size=4).map(",".join)
_LABELS = st.dictionaries(st.sampled_from("xy"), st.sampled_from(["a", "b", "3", "7", "other"]))


@given(_SELECTORS, _SELECTORS, _LABELS)
def test_selectors_that_are_called_disjoint_share_no_labels(one: str, other: str, labels: dict[str, str]) -> None:
    if disjoint(one, other):
        assert not (parse(one).matches(labels) and parse(other).matches(labels))


@pytest.mark.parametrize("text", ["x in (", "a b c", "(" * 50])
def test_a_selector_that_can_not_be_read_may_select_anything(text: str) -> None:
    assert not disjoint(text, "x=a")


def _lease(identity: str, annotation: object) -> dict[str, Any]:
    return {
        "metadata": {"name": "l", "annotations": {names.LEASE_HOLDER_ANNOTATION: annotation}},
        "spec": {"holderIdentity": identity},
    }


def test_what_a_holder_wrote_is_read_back() -> None:
    written = Holder("me", "nodewright run", "host-1", {"pid": 7}, EAST)
    assert holder_of(_lease("me", written.annotation())) == written


def test_what_another_holder_left_behind_is_not_believed() -> None:
    left = Holder("before", "nodewright run", "host-1", {"pid": 7}, ALL).annotation()
    assert holder_of(_lease("me", left)) == Holder("me")


_KEYS = st.sampled_from(["identity", "process", "serves", "controller", "x"])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda each: st.lists(each) | st.dictionaries(_KEYS, each),
)


@given(_JSON, st.booleans())
def test_any_json_is_read(said: Any, as_text: bool) -> None:
    found = holder_of(_lease("me", json.dumps(said) if as_text else said))
    assert found.identity == "me"
    assert isinstance(str(found), str)
    assert holder_of({"metadata": said, "spec": said}) is not None
