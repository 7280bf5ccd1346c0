"""A row of the fleet is read without all facts of its Machine, and says the same as these."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from controllers.kernel.conditions import format_time
from controllers.kernel.machine_facts import read
from nodewright.reports.fleet.cells import row_of, state_of

_TIMES = st.sampled_from(["2026-11-27T20:00:00Z", "2026-11-27T21:00:00+01:00", "", "soon", None, 7])
_CONDITION = st.fixed_dictionaries(
    {"type": st.sampled_from(["Ready", "InfrastructureReady", "UpToDate"])},
    optional={
        "status": st.sampled_from(["True", "False", "Unknown", None]),
        "reason": st.sampled_from(["QuotaExceeded", "", None]),
        "message": st.sampled_from(["cores: 400 of 400 are used", "", None]),
        "lastTransitionTime": _TIMES,
    },
)
_STATUS = st.fixed_dictionaries(
    {},
    optional={
        "conditions": st.lists(_CONDITION | st.sampled_from(["none", 3]), max_size=3) | st.just({}),
        "nodeRef": st.sampled_from([None, {}, {"name": "node-1"}]),
        "failureDomain": st.sampled_from(["zone-a", "", None]),
        "errorReason": st.sampled_from(["InvalidConfiguration", ""]),
        "failureMessage": st.sampled_from(["no such image", ""]),
    },
)
_MACHINES = st.fixed_dictionaries({
    "metadata": st.fixed_dictionaries(
        {"name": st.just("m"), "namespace": st.just("default")},
        optional={"creationTimestamp": _TIMES, "deletionTimestamp": _TIMES},
    ),
    "spec": st.fixed_dictionaries(
        {}, optional={"failureDomain": st.sampled_from(["zone-b", None]), "providerID": st.just("simulated://1")}
    ),
    "status": _STATUS | st.sampled_from([None, {}, ["a list"]]),
})  # fmt: skip


@given(machine=_MACHINES)
def test_a_row_says_what_the_facts_say(machine: dict[str, Any]) -> None:
    facts, row = read(machine), row_of(machine)
    assert (row.node, row.reason, row.message, row.cell.zone) == (
        facts.node_name, facts.reason, facts.message, facts.failure_domain,
    )  # fmt: skip
    since = (facts.deleting_since if facts.deleting else facts.changed) or facts.created
    assert row.since == format_time(since)
    assert (state_of(machine) == "going") is facts.deleting
    assert (state_of(machine) == "Ready") is (facts.ready and not facts.deleting and not facts.failed)
