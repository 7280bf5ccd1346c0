"""When a Machine's bootstrap data is made, renewed and removed, and what is refused before anything is made."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from api import names
from controllers.bootstrap.credentials import token_ids
from controllers.bootstrap.settings import JOIN_TIMEOUT
from controllers.kernel.actions import CreateHost, EnsureBootstrap, Patch, RemoveBootstrap
from controllers.kernel.bootstrapping import (
    TOKEN_LIFE,
    BootstrapData,
    BootstrapReads,
    DataAbsent,
    DataPresent,
    DataRefused,
    DataUnknown,
    NoTarget,
    Support,
)
from controllers.kernel.host_report import Report
from controllers.kernel.plan import Plan
from controllers.kernel.refs import Key
from controllers.kernel.view import HostRead, HostReads, Unreachable
from controllers.machine.bootstrap_data import LONGEST_WARNING, MOST_REMOVALS
from controllers.machine.host_spec import desired_host
from controllers.machine.reconciler import RECONCILER
from providers.base.contract import (
    BootstrapRef,
)
from tests.builders import NOW, Builder, FakeView, cluster, machine, node
from tests.controllers.machine.joining import (
    ABSENT,
    ID,
    SECRET,
    TAKES,
    TARGET,
    TOKEN,
    UID,
    a_host,
    a_machine,
    condition,
    did,
    digest_of,
    planned,
    present,
)


@pytest.mark.parametrize("data", [DataUnknown(), DataAbsent()])
def test_the_data_comes_before_the_host(data: BootstrapData) -> None:
    plan = planned(a_machine(), ABSENT, data)
    (ensure,) = did(plan, EnsureBootstrap)
    assert ensure.order.secret == SECRET
    assert ensure.order.ids == token_ids(UID)
    assert not did(plan, CreateHost)


def test_the_host_is_told_where_its_data_lies() -> None:
    plan = planned(a_machine(), ABSENT, present(a_machine()))
    (create,) = did(plan, CreateHost)
    assert create.request.bootstrap == BootstrapRef(SECRET.name, "cloud-config")
    assert not did(plan, EnsureBootstrap)


@pytest.mark.parametrize(
    ("changes", "why"),
    [({"whole": False}, "a trace"), ({"expires": NOW}, "over"), ({"digest": "of another spec"}, "old")],
)
def test_a_host_is_not_made_with_data_that_may_not_do(changes: dict[str, Any], why: str) -> None:
    plan = planned(a_machine(), ABSENT, present(a_machine(), **changes))
    assert did(plan, EnsureBootstrap)
    assert not did(plan, CreateHost), why


def test_nothing_is_done_twice_while_it_is_under_way() -> None:
    plan = planned(a_machine(), ABSENT, DataAbsent(), in_flight=True)
    assert not did(plan, EnsureBootstrap | CreateHost | RemoveBootstrap)  # type: ignore[arg-type]


def test_the_data_waits_until_it_is_known_where_to_join() -> None:
    assert not did(planned(a_machine(), ABSENT, DataAbsent(), target=None), EnsureBootstrap | CreateHost)  # type: ignore[arg-type]


@pytest.mark.parametrize("where", ["machine", "cluster", "both", "neither"])
def test_it_is_asked_for_on_either(where: str) -> None:
    body = machine("m-1").created(60).kubelet("1.34.0").in_cluster("prod")
    owner = cluster("prod")
    for each, named in ((body, "machine"), (owner, "cluster")):
        if where in {named, "both"}:
            each.spec["bootstrap"] = {}
    plan = planned(body, ABSENT, DataAbsent(), owner)
    assert bool(did(plan, EnsureBootstrap)) is (where != "neither")
    assert bool(did(plan, CreateHost)) is (where == "neither")


@pytest.mark.parametrize("own", ["its provider lets its hosts join by itself", "its configuration brings user data"])
def test_a_provider_that_has_its_own_way_gets_none(own: str) -> None:
    (create,) = did(planned(a_machine(), ABSENT, DataAbsent(), support=Support(own=own)), CreateHost)
    assert create.request.bootstrap is None


REFUSED: dict[str, tuple[Builder, dict[str, Any], str, str]] = {
    "no endpoint": (a_machine(), {"target": NoTarget("NoEndpoint", "set spec.x")}, "NoEndpoint", "spec.x"),
    "a kubelet that is newer": (a_machine().kubelet("1.35.0"), {}, "VersionSkew", "spec.versions.kubelet"),
    "a kubelet that is too old": (a_machine().kubelet("1.30.0"), {}, "VersionSkew", "spec.versions.kubelet"),
    "half a version": (a_machine().kubelet("1.34"), {}, "InvalidBootstrapSpec", "spec.versions.kubelet"),
    "a provider that takes none": (a_machine(), {"support": Support()}, "FormatNotSupported", "spec.bootstrap"),
    "a cluster out of reach": (
        a_machine(),
        {"workload": Unreachable("prod-kubeconfig", "Unreachable", "no answer")},
        "WorkloadUnreachable",
        "no answer",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_is_refused_before_anything_is_made(case: str) -> None:
    body, changes, reason, names_ = REFUSED[case]
    plan = planned(body, ABSENT, DataAbsent(), **changes)
    assert not did(plan, EnsureBootstrap | CreateHost)  # type: ignore[arg-type]
    assert condition(plan, "BootstrapDataReady")[:2] == ("False", reason)
    assert names_ in condition(plan, "BootstrapDataReady")[2]
    assert condition(plan, "Ready")[1] == reason


def test_a_refusal_of_the_api_server_is_said_and_tried_again_when_it_is_time() -> None:
    refused = DataRefused("TokenRefused", "create secrets: forbidden", NOW + timedelta(seconds=5))
    plan = planned(a_machine(), ABSENT, refused)
    assert not did(plan, EnsureBootstrap | CreateHost)  # type: ignore[arg-type]
    assert condition(plan, "BootstrapDataReady") == ("False", "TokenRefused", "create secrets: forbidden")
    again = planned(a_machine(), ABSENT, replace(refused, retry_at=NOW))
    assert did(again, EnsureBootstrap)


@pytest.mark.parametrize(("minutes", "renewed"), [(0, False), (9, False), (10, True), (45, True)])
def test_the_token_is_renewed_while_the_host_comes_up(minutes: int, renewed: bool) -> None:
    body = a_machine().provider_id(ID)
    plan = planned(body, a_host(a_machine()), present(body, minutes))
    assert bool(did(plan, EnsureBootstrap)) is renewed


def test_a_token_that_a_list_misses_is_made_again() -> None:
    body = a_machine().provider_id(ID)
    assert did(planned(body, a_host(a_machine()), present(body, whole=False)), EnsureBootstrap)


def test_the_token_of_a_host_that_nobody_waits_for_any_more_ends() -> None:
    body = a_machine().created(200_000).provider_id(ID)
    assert not did(planned(body, a_host(a_machine(), made=100_000), present(body, 600)), EnsureBootstrap)


def test_a_host_that_does_not_join_is_told_of_and_left() -> None:
    body = a_machine().created(4000).provider_id(ID)
    plan = planned(body, a_host(a_machine(), made=JOIN_TIMEOUT.total_seconds() + 1), present(body))
    assert condition(plan, "NodeJoined")[:2] == ("False", "JoinTimedOut")
    assert not did(plan, RemoveBootstrap)


def _late(console: str = "", report: Report | None = None) -> str:
    """NodeJoined's message of a host that has not joined in time."""
    body = a_machine().created(4000).provider_id(ID)
    made = a_host(a_machine(), made=JOIN_TIMEOUT.total_seconds() + 1)
    known = BootstrapReads(TARGET, present(body), report=report)
    reads = HostReads(made, support=TAKES, bootstrap=known, console=console)
    observed = RECONCILER.observe(Key("default", "m-1"), FakeView(body), reads)
    assert observed is not None
    return condition(RECONCILER.plan(observed), "NodeJoined")[2]


def test_a_host_that_said_nothing_is_told_of_by_its_console() -> None:
    assert "look at its console" in _late()
    shown = _late("cloud-init[231]: no route to host | login:")
    assert shown.endswith("and said nothing; last on its console: cloud-init[231]: no route to host | login:")
    said = Report(TOKEN, 1, 8, 13, "install kubelet 1.36.9")
    assert _late("login:", said).endswith("last: 8/13 install kubelet 1.36.9"), "its own word counts more"


def test_the_console_is_asked_for_once_the_machine_says_that_its_host_is_late() -> None:
    body = a_machine().provider_id(ID)
    asks = [RECONCILER.needs(Key("default", "m-1"), FakeView(each)) for each in (
        body, a_machine().provider_id(ID).condition("NodeJoined", "False", "WaitingForNode"),
        a_machine().provider_id(ID).condition("NodeJoined", "False", "JoinTimedOut"),
    )]  # fmt: skip
    assert [need is not None and need.console for need in asks] == [False, False, True]


def test_all_of_it_goes_when_the_node_is_ready() -> None:
    body = a_machine().provider_id(ID)
    joined = node("m-1").of(body).ready()
    plan = planned(body, a_host(a_machine()), present(body), joined)
    assert condition(plan, "NodeJoined")[:2] == ("True", "Joined")
    (remove,) = did(plan, RemoveBootstrap)
    assert remove.ids[0] == TOKEN
    assert isinstance(did(plan)[0], Patch), "the status first: to Ready it costs no write more"
    assert not did(plan, EnsureBootstrap)


@pytest.mark.parametrize("data", [DataUnknown(), DataAbsent()])
def test_of_a_machine_that_has_joined_nothing_is_removed_that_nobody_has_seen(data: BootstrapData) -> None:
    body = a_machine().provider_id(ID)
    assert not did(planned(body, a_host(a_machine()), data, node("m-1").of(body).ready()), RemoveBootstrap)


def test_the_machine_is_marked_with_the_id_when_it_is_bound() -> None:
    plan = planned(a_machine(), a_host(a_machine()), present(a_machine()))
    (bind,) = did(plan, Patch)
    assert bind.patch["metadata"]["annotations"] == {names.BOOTSTRAP_TOKEN_ANNOTATION: TOKEN}


def deleting(data: BootstrapData, read: HostRead = ABSENT, in_flight: bool = False, **bootstrap: Any) -> Plan:
    body = a_machine(**bootstrap).provider_id(ID).deleting(5, names.MACHINE_FINALIZER)
    return planned(body, read, data, in_flight=in_flight)


def is_released(plan: Plan) -> bool:
    return any("finalizers" in action.patch.get("metadata", {}) for action in did(plan, Patch))


@pytest.mark.parametrize("data", [DataUnknown(), DataPresent(TOKEN)])
def test_a_machine_stays_until_its_token_has_gone(data: BootstrapData) -> None:
    plan = deleting(data)
    assert did(plan, RemoveBootstrap)
    assert not is_released(plan)


def test_it_stays_while_its_token_may_still_be_made() -> None:
    assert not is_released(deleting(DataAbsent(), in_flight=True))


def test_it_goes_once_the_token_has_gone() -> None:
    assert is_released(deleting(DataAbsent()))


@pytest.mark.parametrize("refused", [("TokenRefused", 1), ("WorkloadUnreachable", 1), ("Other", MOST_REMOVALS)])
def test_what_nobody_can_remove_holds_no_machine_for_ever(refused: tuple[str, int]) -> None:
    reason, failures = refused
    assert is_released(deleting(DataRefused(reason, "why", NOW + timedelta(seconds=5), failures)))


def test_a_host_that_goes_needs_no_token() -> None:
    plan = deleting(DataPresent(TOKEN), a_host(a_machine()))
    assert did(plan, RemoveBootstrap)


def test_a_machine_that_never_had_any_is_not_held_up() -> None:
    body = machine("m-1").created(60).deleting(5, names.MACHINE_FINALIZER)
    plan = planned(body, ABSENT, DataUnknown())
    assert is_released(plan)
    assert not did(plan, RemoveBootstrap)


def test_one_whose_spec_asks_no_more_is_still_rid_of_its_token() -> None:
    body = machine("m-1").created(60).annotated(names.BOOTSTRAP_TOKEN_ANNOTATION, TOKEN)
    body = body.deleting(5, names.MACHINE_FINALIZER)
    assert did(planned(body, ABSENT, DataUnknown()), RemoveBootstrap)


def test_no_secret_is_in_a_plan() -> None:
    """Actions are logged and shown: they carry the id of a token, and a way to render it."""
    plan = planned(a_machine(), ABSENT, DataAbsent())
    (ensure,) = did(plan, EnsureBootstrap)
    token = f"{TOKEN}.0123456789abcdef"
    assert token.encode() not in repr(plan).encode()
    assert ensure.order.render(token) != ensure.order.render(f"{TOKEN}.fedcba9876543210")


def test_a_changed_spec_bootstrap_is_another_host_and_an_absent_one_changes_no_hash() -> None:
    plain = machine("m-1").kubelet("1.34.0")
    hashes = [
        desired_host(body.build(), FakeView()).spec_hash for body in (plain, a_machine(), a_machine(mirror="https://m"))
    ]
    assert len(set(hashes)) == 3


def hazardous() -> Builder:
    """A kubelet that is a minor version older than the cluster, which goes and is told of."""
    return a_machine().kubelet("1.33.4")


def test_what_a_later_version_breaks_is_said_where_the_data_is_ready() -> None:
    body = hazardous()
    data = DataPresent(TOKEN, NOW + TOKEN_LIFE, digest_of(body))
    status_, reason, message = condition(planned(body, ABSENT, data), "BootstrapDataReady")
    assert (status_, reason) == ("True", "BootstrapDataCreated")
    assert "kubeadm 1.33.4 is older than the cluster, which is 1.34.2" in message
    assert len(message) <= LONGEST_WARNING
    assert condition(planned(a_machine(), ABSENT, present(a_machine())), "BootstrapDataReady")[2] == ""


def test_the_warning_of_a_machine_that_has_joined_stays_and_costs_nothing() -> None:
    body = hazardous().provider_id(ID).condition("BootstrapDataReady", "True", "BootstrapDataCreated", "a warning")
    joined = node("m-1").of(body).ready()
    for target in (TARGET, None, NoTarget("NoEndpoint", "none")):
        plan = planned(body, a_host(hazardous()), DataAbsent(), joined, target=target)
        assert condition(plan, "BootstrapDataReady") in [
            ("True", "BootstrapDataCreated", "a warning"),
            ("None", "None", "None"),
        ]
