"""The options and decisions that a running autoscaler tells: read back as they were, bounded, total over any text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.autoscaler.decision import Decision
from controllers.autoscaler.expanders import Choosing
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.metrics import (
    LONGEST_DECISION,
    LONGEST_OPTIONS,
    MOST_DECISIONS,
    decisions_text,
    options_text,
    read_decisions,
    read_options,
)
from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions, Range, ShrinkOptions
from controllers.autoscaler.scale_up import ScaleUp
from controllers.kernel.refs import Key
from controllers.scaling.node_group import Bounds, Discovery, Filter

NOW = datetime(2026, 6, 1, tzinfo=UTC)
OTHERS = AutoscalerOptions(
    growth=GrowthOptions(Choosing(("priority", "random")), cores=Range(1, 8), window=timedelta(minutes=3)),
    shrink=ShrinkOptions(enabled=False, utilization_threshold=0.25),
    discovery=Discovery({Key("ns", "web"): Bounds(1, 9)}, (Filter("ns", "", (("pool", "a"),)),)),
    namespace="scaling",
    cluster=Key("default", "prod"),
)


@pytest.mark.parametrize("options", [AutoscalerOptions(), OTHERS], ids=["defaults", "others"])
def test_options_are_read_back_as_they_were(options: AutoscalerOptions) -> None:
    assert read_options(options_text(options)) == options


def test_options_that_are_too_long_are_left_out() -> None:
    given_ = {Key("namespace", f"group-{n}"): Bounds(0, 9) for n in range(5000)}
    assert options_text(AutoscalerOptions(discovery=Discovery(given_))) == ""
    assert (
        len(options_text(AutoscalerOptions(discovery=Discovery(dict(list(given_.items())[:700]))))) <= LONGEST_OPTIONS
    )


@given(
    text=st.text()
    | st.sampled_from(["[]", "{}", '{"discovery": {"given": [1]}}', "[" * 100_000, '[{"at": 3}]', "null"])
)
def test_any_text_is_read(text: str) -> None:
    assert read_options(text) is None
    assert read_decisions(text) == []


def grown(nodes: int) -> Decision:
    return Decision(memory=Memory(), scale_up=ScaleUp(added={"MachineDeployment/ns/web": nodes}))


def test_what_is_decided_again_is_told_once_and_the_latest_are_kept() -> None:
    text = ""
    for minute in range(3 * MOST_DECISIONS):
        text = decisions_text(text, grown(1 + minute // 2), NOW + timedelta(minutes=minute))
    made = read_decisions(text)
    assert len(made) == MOST_DECISIONS
    assert made[-1].text == f"MachineDeployment/ns/web: {3 * MOST_DECISIONS // 2} Nodes more"
    assert made[-1].at == NOW + timedelta(minutes=3 * MOST_DECISIONS - 2), "the time of the first of the two"


def test_nothing_decided_leaves_the_text_as_it_is() -> None:
    before = decisions_text("", grown(1), NOW)
    assert decisions_text(before, Decision(memory=Memory()), NOW + timedelta(days=1)) == before
    assert decisions_text("", Decision(memory=Memory()), NOW) == ""


def test_a_decision_of_any_length_is_bounded() -> None:
    added = {f"MachineDeployment/ns/{'x' * 200}-{n}": 1 for n in range(1000)}
    text = decisions_text("", Decision(memory=Memory(), scale_up=ScaleUp(added=added)), NOW)
    assert len(read_decisions(text)[-1].text) <= LONGEST_DECISION
