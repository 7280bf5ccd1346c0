"""When a Machine's bootstrap data is made, renewed and removed, and what is refused before anything is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from api import names
from controllers.bootstrap.credentials import secret_key, token_ids
from controllers.bootstrap.settings import JOIN_TIMEOUT
from controllers.kernel.actions import CreateHost, EnsureBootstrap, Patch, RemoveBootstrap, UpdateHost
from controllers.kernel.bootstrapping import (
    TOKEN_LIFE,
    BootstrapData,
    BootstrapReads,
    DataAbsent,
    DataPresent,
    DataRefused,
    DataUnknown,
    JoinTarget,
    NoTarget,
    Support,
)
from controllers.kernel.conditions import find
from controllers.kernel.host_report import Report
from controllers.kernel.in_place import Revision
from controllers.kernel.plan import Blocked, Plan
from controllers.kernel.refs import Key
from controllers.kernel.view import HostAbsent, HostPresent, HostRead, HostReads, Unreachable, Workload
from controllers.machine.bootstrap_data import LONGEST_WARNING, MOST_REMOVALS
from controllers.machine.host_spec import desired_host
from controllers.machine.reconciler import RECONCILER
from providers.base.contract import (
    Address,
    BootstrapRef,
    Host,
    HostState,
    InProgress,
    NeedsDrain,
    NeedsReplacement,
    UpdateAnswer,
)
from tests.builders import NOW, Builder, FakeView, cluster, machine, node
from tests.controllers.bootstrap.test_join import CA

UID, ID = "uid-m-1", "sim://1"
TARGET = JoinTarget("https://10.0.0.1:6443", CA, "1.34.2")
TAKES = Support(("cloud-config",))
TOKEN = token_ids(UID)[0]
ABSENT = HostAbsent()
ABSENT_DATA = DataAbsent()
Target = JoinTarget | NoTarget | None
SECRET = secret_key(Key("default", "m-1"))


def a_machine(**bootstrap: Any) -> Builder:
    body = machine("m-1").created(60).kubelet("1.34.0")
    body.spec["bootstrap"] = bootstrap
    return body


def a_host(body: Builder, made: float = 50, **changes: Any) -> HostPresent:
    wanted = desired_host(body.build(), FakeView()).spec_hash
    addresses = (Address("InternalIP", "10.0.0.7"),)
    shown = Host("1", UID, "m-1", ID, HostState.RUNNING, wanted, addresses, created_at=NOW - timedelta(seconds=made))
    return HostPresent(replace(shown, **changes))


def planned(
    body: Builder,
    read: HostRead,
    data: BootstrapData,
    *others: Builder,
    target: JoinTarget | NoTarget | None = TARGET,
    in_flight: bool = False,
    support: Support = TAKES,
    workload: Workload | None = None,
) -> Plan:
    view = FakeView(body, *others)
    if workload is not None:
        view.living_in(workload)
    reads = HostReads(read, support=support, bootstrap=BootstrapReads(target, data, in_flight))
    observed = RECONCILER.observe(Key("default", "m-1"), view, reads)
    assert observed is not None
    return RECONCILER.plan(observed)


def did(plan: Plan, kind: type[Any] = object) -> list[Any]:
    return [action for action in plan.actions() if isinstance(action, kind)]


def digest_of(body: Builder, *others: Builder) -> str:
    (ensure,) = did(planned(body, ABSENT, DataAbsent(), *others), EnsureBootstrap)
    return str(ensure.order.digest)


def present(body: Builder, minutes: float = 0, **changes: Any) -> DataPresent:
    """Made so many minutes ago."""
    made = DataPresent(TOKEN, NOW - timedelta(minutes=minutes) + TOKEN_LIFE, digest_of(a_machine()))
    return replace(made, **changes)


def status(plan: Plan) -> Mapping[str, Any]:
    patches = [action.patch["status"] for action in did(plan, Patch) if action.subresource == "status"]
    return patches[0] if patches else {}


def condition(plan: Plan, type_: str) -> tuple[str, str, str]:
    found = find(status(plan).get("conditions"), type_) or {}
    return str(found.get("status")), str(found.get("reason")), str(found.get("message"))


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


def changed(
    body: Builder, answer: UpdateAnswer | None, data: BootstrapData, support: Support = TAKES, target: Target = TARGET
) -> Plan:
    """The spec was changed, the host runs, and the provider was asked."""
    read = a_host(a_machine(), spec_hash="of another spec")
    reads = HostReads(read, answer=answer, support=support, bootstrap=BootstrapReads(target, data))
    observed = RECONCILER.observe(Key("default", "m-1"), FakeView(body.provider_id(ID)), reads)
    assert observed is not None
    return RECONCILER.plan(observed)


def up_to_date(plan: Plan) -> Mapping[str, Any]:
    (patch,) = [a for a in did(plan, Patch) if "status" in a.patch]
    said = find(patch.patch["status"]["conditions"], "UpToDate")
    assert said is not None
    return said


@pytest.mark.parametrize(
    ("target", "reason", "text"),
    [
        (JoinTarget("https://10.0.0.1:6443", CA, "1.30.2"), "VersionSkew", "is newer than the API server"),
        (NoTarget("EndpointUnknown", "nobody says where"), "EndpointUnknown", "nobody says where"),
    ],
)
def test_a_host_that_runs_is_not_given_up_for_one_that_could_not_join(
    target: JoinTarget | NoTarget, reason: str, text: str
) -> None:
    plan = changed(a_machine(), NeedsReplacement("another image"), ABSENT_DATA, target=target)
    assert not any("replacement" in a.patch.get("status", {}) for a in did(plan, Patch))
    said = up_to_date(plan)
    assert (said["status"], said["reason"]) == ("False", reason)
    assert text in said["message"]


@pytest.mark.parametrize("policy", ["Prefer", "Require"])
def test_a_kubelet_that_waits_for_its_api_server_goes_on_once_that_is_newer(policy: str) -> None:
    """The provider was asked, its answer was kept, and workers that were upgraded right after the control plane stayed
    as they were, with NeedsReplacement where the rollout requires in place.
    """
    body = a_machine(archives=MIRROR).provider_id(ID)
    template = Revision({"spec": body.build()["spec"]}).digest
    body = body.annotated(names.TEMPLATE_ANNOTATION, template).annotated(names.IN_PLACE_ANNOTATION, policy)
    older = JoinTarget("https://10.0.0.1:6443", CA, "1.30.2")
    waits = changed(body, None, ABSENT_DATA, RUNS_SCRIPTS, older)
    assert up_to_date(waits)["reason"] == "VersionSkew"
    assert not did(waits, UpdateHost)
    (update,) = did(changed(body, None, ABSENT_DATA, RUNS_SCRIPTS), UpdateHost)
    assert update.request.upgrade.script


def test_nothing_is_given_up_before_it_is_known_where_another_host_would_join() -> None:
    plan = changed(a_machine(), NeedsReplacement("another image"), ABSENT_DATA, target=None)
    assert not any("replacement" in a.patch.get("status", {}) for a in did(plan, Patch))
    plan = changed(a_machine(), NeedsReplacement("another image"), ABSENT_DATA)
    assert any("replacement" in a.patch.get("status", {}) for a in did(plan, Patch))


RUNS_SCRIPTS = Support(("script",))
MIRROR = {"kubernetes": {"mirror": "https://mirror.example"}}


def test_a_provider_that_runs_scripts_gets_the_steps_of_the_upgrade_and_no_token_is_made() -> None:
    plan = changed(a_machine(archives=MIRROR), NeedsDrain("the kubelet"), ABSENT_DATA, RUNS_SCRIPTS)
    (update,) = did(plan, UpdateHost)
    assert update.drained
    assert "kubeadm upgrade node" in update.request.upgrade.script
    assert not did(plan, EnsureBootstrap)


@pytest.mark.parametrize(
    ("body", "support", "why"),
    [
        (a_machine(), RUNS_SCRIPTS, "the image brings the kubelet"),
        (a_machine(archives=MIRROR), TAKES, "runs nothing on its hosts"),
    ],
)
def test_where_steps_bring_no_other_version_the_provider_is_told_why(body: Builder, support: Support, why: str) -> None:
    (update,) = did(changed(body, None, ABSENT_DATA, support), UpdateHost)
    assert bool(update.request.upgrade.script) == (support is RUNS_SCRIPTS), "its configuration can be changed"
    assert why in update.request.upgrade.why_not


def test_how_far_a_change_in_place_is_stands_in_its_condition() -> None:
    plan = changed(a_machine(), InProgress(5.0, "step 3/6 install kubelet 1.36.3"), ABSENT_DATA)
    said = up_to_date(plan)
    assert said["reason"] == "UpdatingInPlace"
    assert said["message"].endswith("step 3/6 install kubelet 1.36.3")


def test_a_host_that_went_back_serves_again_and_nothing_is_tried_by_itself() -> None:
    why = "step 6/10 upgrade the control plane to v1.37.0 failed with 1, and the host went back"
    plan = changed(a_machine(), InProgress(5.0, why, failed=True), ABSENT_DATA)
    said = up_to_date(plan)
    assert (said["status"], said["reason"], said["message"]) == ("False", "UpdateFailed", why)
    assert not did(plan, UpdateHost)
    assert isinstance(plan.outcome, Blocked)


def test_the_second_hash_tells_the_kubelets_version_from_all_else() -> None:
    def hashes(body: Builder) -> tuple[str, str]:
        request = desired_host(body.build(), FakeView()).request
        assert request is not None
        return request.spec_hash, request.kept_hash

    spec_hash, kept_hash = hashes(a_machine())
    newer, edited = a_machine().kubelet("1.34.1"), a_machine(mirror="https://m")
    assert hashes(newer)[0] != spec_hash
    assert hashes(newer)[1] == kept_hash != spec_hash
    assert hashes(edited)[1] != kept_hash


def test_the_other_hashes_tell_what_is_changed_on_a_host_and_what_under_its_pods() -> None:
    def hashes(body: Builder) -> tuple[str, str]:
        request = desired_host(body.build(), FakeView()).request
        assert request is not None
        return request.fixed_hash, request.pods_hash

    control_plane = a_machine()
    control_plane.spec["versions"]["controlPlane"] = "1.34.0"
    secret = {"path": "/etc/b", "contentFrom": {"secret": {"name": "s", "key": "k"}}}
    before = hashes(a_machine())
    assert all(before)
    assert before[0] == hashes(a_machine().kubelet("1.34.1"))[0] != hashes(a_machine(swap="Keep"))[0]
    assert before[1] not in {hashes(a_machine().kubelet("1.34.1"))[1], hashes(a_machine(archives=MIRROR))[1]}
    assert before == hashes(a_machine(kubeletConfiguration={"maxPods": 5}, files=[{"path": "/etc/a", "content": "a"}]))
    assert before == hashes(a_machine(proxy={"http": "http://p"}, sysctls={"vm.swappiness": "1"}, kernelModules=["a"]))
    assert before[0] == hashes(a_machine(archives=MIRROR))[0]
    assert before == hashes(a_machine(files=[secret]))
    assert hashes(control_plane) == ("", "")


def test_a_drained_host_that_may_be_rebuilt_gets_data_first() -> None:
    body = a_machine()

    def asked(data: BootstrapData) -> Plan:
        return changed(body, NeedsDrain("rebuild"), data)

    assert did(asked(DataAbsent()), EnsureBootstrap)
    assert not did(asked(DataAbsent()), UpdateHost)
    (update,) = did(asked(present(body)), UpdateHost)
    assert update.request.bootstrap == BootstrapRef(SECRET.name, "cloud-config")


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
