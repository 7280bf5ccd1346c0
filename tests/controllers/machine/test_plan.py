"""One round, as a table: what is found, and what is done about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from api import names
from controllers.kernel.actions import Action, CreateHost, Delete, DeleteHost, Event, Patch, UpdateHost
from controllers.kernel.plan import Blocked, Failed, Plan, Settled, Wait
from controllers.kernel.refs import Key
from controllers.kernel.view import (
    Attempt,
    ConfigProblem,
    HostAbsent,
    HostPresent,
    HostReads,
    HostUnknown,
)
from controllers.machine.host_spec import desired_host
from controllers.machine.reconciler import RECONCILER
from providers.base.contract import (
    Address,
    Host,
    HostState,
    InProgress,
    NeedsDrain,
    NeedsReplacement,
    Updated,
)
from providers.base.errors import ErrorClass
from tests.builders import NOW, Builder, FakeView, cluster, machine, node

ID = "sim://1"
M = machine("m-1").created(60)
BOUND = machine("m-1").created(60).provider_id(ID)
SPEC_HASH = desired_host(M.build(), FakeView()).spec_hash
REPLACED = {"providerID": ID, "reason": "so", "startedAt": "2026-06-01T11:59:00Z"}


def host(state: HostState = HostState.RUNNING, spec_hash: str = SPEC_HASH, provider_id: str = ID) -> HostPresent:
    addresses = (Address("InternalIP", "10.0.0.1"),)
    return HostPresent(Host("h-1", "uid-m-1", "m-1", provider_id, state, spec_hash, addresses))


def failed(error_class: ErrorClass, retry_in: float, call: str = "CreateHost") -> Attempt:
    return Attempt(call, error_class, "the provider's words", 1, NOW, NOW + timedelta(seconds=retry_in))


def going(builder: Builder) -> Builder:
    return builder.deleting(5, names.MACHINE_FINALIZER)


def being_replaced(builder: Builder) -> Builder:
    builder.status["replacement"] = dict(REPLACED)
    return builder


def word(action: Action) -> str:
    match action:
        case Patch(target=target, subresource=subresource, patch=patch):
            inside = subresource or "+".join(sorted(patch))
            return f"patch {target.kind} {inside}"
        case Event(reason=reason):
            return f"event {reason}"
        case CreateHost() | DeleteHost():
            return type(action).__name__
        case UpdateHost(drained=drained):
            return f"UpdateHost{' drained' if drained else ''}"
        case Delete(target=target):
            return f"delete {target}"
        case _:
            raise AssertionError(f"the room does not {action}")


@dataclass(frozen=True)
class Case:
    machine: Builder
    reads: HostReads
    does: list[str]
    outcome: type
    deletion_guards: tuple[Builder, ...] = ()
    says: dict[str, Any] = field(default_factory=dict)


def new(*args: Any) -> Builder:
    return machine("m-1").created(60)


CASES: dict[str, Case] = {
    "a new Machine gets its host": Case(machine("m-1").created(1), HostReads(HostAbsent()), ["CreateHost"], Wait),
    "one that has waited for a while says so as well": Case(
        new(), HostReads(HostAbsent()), ["patch Machine status", "CreateHost"], Wait, says={"phase": "Pending"}
    ),
    "a call that is under way is not made twice": Case(
        machine("m-1").created(1), HostReads(HostAbsent(), in_flight="CreateHost"), [], Wait
    ),
    "one that goes while its host is in the making waits for the answer": Case(
        machine("m-1").deleting(1, names.MACHINE_FINALIZER),
        HostReads(HostAbsent(), in_flight="CreateHost"),
        ["patch Machine status"],
        Wait,
    ),
    "after a failure it waits for its turn": Case(
        new(),
        HostReads(HostAbsent(), attempt=failed(ErrorClass.QUOTA_EXCEEDED, 20)),
        ["patch Machine status", "event QuotaExceeded"],
        Wait,
        says={"phase": "Pending"},
    ),
    "and tries again when it has come": Case(
        new(),
        HostReads(HostAbsent(), attempt=failed(ErrorClass.QUOTA_EXCEEDED, 0)),
        ["patch Machine status", "event QuotaExceeded", "CreateHost"],
        Wait,
    ),
    "a config that the provider refuses is terminal": Case(
        new(),
        HostReads(HostAbsent(), attempt=failed(ErrorClass.INVALID_CONFIGURATION, 20)),
        ["patch Machine status", "event InvalidConfiguration"],
        Failed,
        says={"phase": "Failed", "errorReason": "InvalidConfiguration", "failureReason": "InvalidConfiguration"},
    ),
    "an unknown cloud is waited for": Case(machine("m-1").created(1), HostReads(HostUnknown("down")), [], Wait),
    "a host that is there binds the Machine first of all": Case(new(), HostReads(host()), ["patch Machine spec"], Wait),
    "a Machine without a finalizer gets it in the same write": Case(
        new().finalized_by(), HostReads(host()), ["patch Machine metadata+spec"], Wait
    ),
    "a host without a providerID is waited for": Case(
        new(), HostReads(host(HostState.PENDING, provider_id="")), ["patch Machine status"], Wait
    ),
    "a host that failed fails the Machine": Case(
        BOUND,
        HostReads(host(HostState.FAILED)),
        ["patch Machine status", "event HostFailed"],
        Failed,
        says={"phase": "Failed", "failureReason": "HostFailed"},
    ),
    "a host that is switched off waits for a person": Case(
        BOUND, HostReads(host(HostState.STOPPED)), ["patch Machine status"], Blocked, says={"phase": "Provisioned"}
    ),
    "a host that vanished fails the Machine": Case(
        BOUND,
        HostReads(HostAbsent()),
        ["patch Machine status", "event HostMissing"],
        Failed,
        says={"phase": "Failed", "failureReason": "HostMissing"},
    ),
    "a providerID of another host is not guessed away": Case(
        BOUND, HostReads(host(provider_id="sim://2")), ["patch Machine status", "event NodeConflict"], Blocked
    ),
    "a Ready Node makes it Running": Case(
        BOUND,
        HostReads(host()),
        ["patch Machine status"],
        Settled,
        deletion_guards=(node("m-1").of(BOUND).ready(),),
        says={"phase": "Running"},
    ),
    "a Ready Node counts more than a list that is older": Case(
        BOUND,
        HostReads(host(HostState.PENDING)),
        ["patch Machine status"],
        Settled,
        deletion_guards=(node("m-1").of(BOUND).ready(),),
        says={"phase": "Running"},
    ),
    "a Node that was not registered with its labels gets them": Case(
        BOUND,
        HostReads(host()),
        ["patch Machine status", "patch Node metadata"],
        Settled,
        deletion_guards=(node("m-1").created(30).provider_id(ID).ready(),),
    ),
    "a Node of another Machine is not taken": Case(
        BOUND,
        HostReads(host()),
        ["patch Machine status"],
        Blocked,
        deletion_guards=(node("m-1").of(machine("m-2")).provider_id(ID).ready(),),
    ),
    "a host of another spec is updated": Case(
        BOUND,
        HostReads(host(spec_hash="old")),
        ["patch Machine status", "UpdateHost"],
        Wait,
        says={"phase": "Updating"},
    ),
    "an update that goes on is waited for": Case(
        BOUND,
        HostReads(host(HostState.UPDATING, "old"), answer=InProgress(5), answered_at=NOW),
        ["patch Machine status"],
        Wait,
    ),
    "and asked for again when the provider said so": Case(
        BOUND,
        HostReads(host(HostState.UPDATING, "old"), answer=InProgress(5), answered_at=NOW - timedelta(seconds=6)),
        ["patch Machine status", "UpdateHost"],
        Wait,
    ),
    "an update that is done is waited for in the list": Case(
        BOUND, HostReads(host(spec_hash="old"), answer=Updated()), ["patch Machine status"], Wait
    ),
    "an update that needs a drain cordons first": Case(
        BOUND,
        HostReads(host(spec_hash="old"), answer=NeedsDrain("restart")),
        ["patch Machine status", "patch Node metadata+spec"],
        Blocked,
        deletion_guards=(node("m-1").of(BOUND).ready(),),
    ),
    "and goes on once the Node is empty": Case(
        BOUND,
        HostReads(host(spec_hash="old"), answer=NeedsDrain("restart")),
        ["patch Machine status", "UpdateHost drained"],
        Wait,
        deletion_guards=(node("m-1").of(BOUND).ready().draining_for("uid-m-1"),),
    ),
    "what failed after a drain is asked again as drained": Case(
        BOUND,
        HostReads(host(spec_hash="old"), attempt=failed(ErrorClass.TIMEOUT, 0, "UpdateHost")),
        ["patch Machine status", "event Timeout", "UpdateHost drained"],
        Wait,
        deletion_guards=(node("m-1").of(BOUND).ready().draining_for("uid-m-1"),),
    ),
    "and as not drained if the Node was not emptied for it": Case(
        BOUND,
        HostReads(host(spec_hash="old"), attempt=failed(ErrorClass.TIMEOUT, 0, "UpdateHost")),
        ["patch Machine status", "event Timeout", "UpdateHost"],
        Wait,
        deletion_guards=(node("m-1").of(BOUND).ready().cordoned(),),
    ),
    "a bad edit does not fail a Machine whose host nobody can see now": Case(
        BOUND,
        HostReads(HostUnknown("down"), (ConfigProblem("providerConfig.value.x", "is wrong"),)),
        ["patch Machine status", "event InvalidConfiguration"],
        Failed,
        deletion_guards=(node("m-1").of(BOUND).ready(),),
        says={"phase": None, "errorReason": None},
    ),
    "a replacement is recorded before anything is touched": Case(
        BOUND,
        HostReads(host(spec_hash="old"), answer=NeedsReplacement("too old")),
        ["patch Machine status", "event Replacing"],
        Wait,
        says={
            "phase": "Updating",
            "replacement": {"providerID": ID, "reason": "too old", "startedAt": "2026-06-01T12:00:00Z"},
        },
    ),
    "a recorded replacement deletes the old host": Case(
        being_replaced(machine("m-1").created(60).provider_id(ID)),
        HostReads(host(spec_hash="old")),
        ["patch Machine status", "DeleteHost"],
        Wait,
    ),
    "then forgets it": Case(
        being_replaced(machine("m-1").created(60).provider_id(ID)),
        HostReads(HostAbsent()),
        ["delete Node m-1", "patch Machine spec"],
        Wait,
        deletion_guards=(node("m-1").of(BOUND).ready(),),
    ),
    "then makes the new one": Case(
        being_replaced(new()), HostReads(HostAbsent()), ["patch Machine status", "CreateHost"], Wait
    ),
    "a new host that vanishes before it was said to be new is not replaced again": Case(
        being_replaced(machine("m-1").created(60).provider_id("sim://2")),
        HostReads(HostAbsent()),
        ["patch Machine status", "event HostMissing"],
        Failed,
    ),
    "a paused Machine is only called so": Case(
        new().annotated(names.CAPI_PAUSED_ANNOTATION), HostReads(HostAbsent()), ["patch Machine status"], Settled
    ),
    "a Machine of a paused Cluster as well": Case(
        new().in_cluster("c-1"), HostReads(HostAbsent()), ["patch Machine status"], Settled, (cluster("c-1").paused(),)
    ),
    "a paused Machine is not even deleted": Case(
        going(new()).annotated(names.PAUSED_ANNOTATION), HostReads(host()), ["patch Machine status"], Settled
    ),
    "a Machine that goes deletes its host": Case(
        going(machine("m-1").provider_id(ID)),
        HostReads(host()),
        ["patch Machine status", "DeleteHost"],
        Wait,
        says={"phase": "Deleting"},
    ),
    "a host that is going is waited for": Case(
        going(machine("m-1").provider_id(ID)), HostReads(host(HostState.DELETING)), ["patch Machine status"], Wait
    ),
    "when the host is gone the Node goes, then the Machine": Case(
        going(machine("m-1").provider_id(ID)),
        HostReads(HostAbsent()),
        ["delete Node m-1", "patch Machine metadata"],
        Settled,
        deletion_guards=(node("m-1").of(BOUND).ready(),),
    ),
    "a host that may exist holds a Machine with a bad config": Case(
        going(machine("m-1")),
        HostReads(HostUnknown("no scope"), (ConfigProblem("providerConfig.value.x", "is wrong"),)),
        ["patch Machine status", "event InvalidConfiguration"],
        Blocked,
    ),
    "without our finalizer there is nothing to do": Case(
        machine("m-1").deleting(5, "example.com/theirs"), HostReads(host()), [], Settled
    ),
}


def planned(case: Case) -> Plan:
    observed = RECONCILER.observe(Key("default", "m-1"), FakeView(case.machine, *case.deletion_guards), case.reads)
    assert observed is not None
    return RECONCILER.plan(observed)


@pytest.mark.parametrize("case", CASES)
def test_plan(case: str) -> None:
    plan = planned(CASES[case])
    assert [word(action) for action in plan.actions()] == CASES[case].does
    assert isinstance(plan.outcome, CASES[case].outcome), plan.outcome


@pytest.mark.parametrize("case", [name for name in CASES if CASES[name].says])
def test_status(case: str) -> None:
    patch = next(action for action in planned(CASES[case]).actions() if isinstance(action, Patch))
    said = patch.patch["status"]
    assert {name: said.get(name) for name in CASES[case].says} == CASES[case].says


def test_a_ready_node_is_newer_news_than_a_list_in_which_its_host_still_boots() -> None:
    """Else a list that is a moment old makes a Machine that is Ready not Ready again."""
    plan = planned(CASES["a Ready Node counts more than a list that is older"])
    patch = next(action for action in plan.actions() if isinstance(action, Patch))
    assert {c["type"]: c["status"] for c in patch.patch["status"]["conditions"]}["Ready"] == "True"


@pytest.mark.parametrize("case", CASES)
def test_every_action_says_why(case: str) -> None:
    assert all(action.why for action in planned(CASES[case]).actions())


@pytest.mark.parametrize("case", CASES)
def test_the_same_world_makes_the_same_plan(case: str) -> None:
    assert planned(CASES[case]) == planned(CASES[case])


@pytest.mark.parametrize("case", CASES)
def test_a_status_patch_is_guarded_since_it_replaces_the_list_of_conditions(case: str) -> None:
    for action in planned(CASES[case]).actions():
        if isinstance(action, Patch) and action.subresource == "status":
            assert action.resource_version == "1"
