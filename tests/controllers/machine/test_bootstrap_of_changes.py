"""A changed Machine whose host runs: it waits, is changed in place, or is replaced; and what the hashes tell apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from api import names
from controllers.kernel.actions import EnsureBootstrap, Patch, UpdateHost
from controllers.kernel.bootstrapping import (
    BootstrapData,
    BootstrapReads,
    DataAbsent,
    JoinTarget,
    NoTarget,
    Support,
)
from controllers.kernel.conditions import find
from controllers.kernel.in_place import Revision
from controllers.kernel.plan import Blocked, Plan, Wait
from controllers.kernel.refs import Key
from controllers.kernel.view import HostReads
from controllers.machine.host_spec import desired_host
from controllers.machine.reconciler import RECONCILER
from providers.base.contract import (
    BootstrapRef,
    InProgress,
    NeedsDrain,
    NeedsReplacement,
    UpdateAnswer,
)
from tests.builders import Builder, FakeView
from tests.controllers.bootstrap.test_join import CA
from tests.controllers.machine.joining import (
    ABSENT_DATA,
    ID,
    SECRET,
    TAKES,
    TARGET,
    Target,
    a_host,
    a_machine,
    did,
    present,
)


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


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (JoinTarget("https://10.0.0.1:6443", CA, "1.30.2"), "VersionSkew"),
        (NoTarget("WorkloadUnreachable", "get configmaps: ClientConnectionError"), "WorkloadUnreachable"),
    ],
    ids=["older", "away"],
)
@pytest.mark.parametrize("policy", ["Prefer", "Require"])
def test_a_kubelet_that_waits_for_its_api_server_goes_on_once_that_is_newer(
    policy: str, target: JoinTarget | NoTarget, reason: str
) -> None:
    """The provider was asked, its answer was kept, and workers that were upgraded right after the control plane stayed
    as they were, with NeedsReplacement where the rollout requires in place. So did a control plane whose API server was
    away for some seconds, during its own change.
    """
    body = a_machine(archives=MIRROR).provider_id(ID)
    template = Revision({"spec": body.build()["spec"]}).digest
    body = body.annotated(names.TEMPLATE_ANNOTATION, template).annotated(names.IN_PLACE_ANNOTATION, policy)
    waits = changed(body, None, ABSENT_DATA, RUNS_SCRIPTS, target)
    assert up_to_date(waits)["reason"] == reason
    assert not did(waits, UpdateHost)
    (update,) = did(changed(body, None, ABSENT_DATA, RUNS_SCRIPTS), UpdateHost)
    assert update.request.upgrade.script


def test_a_change_that_has_begun_waits_while_the_api_server_is_away() -> None:
    """As during its own upgrade. Asked then, the provider answered that another host is needed, and that was kept."""
    body, begun = a_machine(archives=MIRROR), InProgress(0.0, "step 5/10")
    away = NoTarget("WorkloadUnreachable", "get configmaps: ClientConnectionError")
    waits = changed(body, begun, ABSENT_DATA, RUNS_SCRIPTS, away)
    assert not did(waits, UpdateHost)
    assert isinstance(waits.outcome, Wait)
    assert up_to_date(waits)["reason"] == "UpdatingInPlace"
    assert did(changed(body, begun, ABSENT_DATA, RUNS_SCRIPTS), UpdateHost)


def test_nothing_is_given_up_before_it_is_known_where_another_host_would_join() -> None:
    plan = changed(a_machine(), NeedsReplacement("another image"), ABSENT_DATA, target=None)
    assert not any("replacement" in a.patch.get("status", {}) for a in did(plan, Patch))
    plan = changed(a_machine(), NeedsReplacement("another image"), ABSENT_DATA)
    assert any("replacement" in a.patch.get("status", {}) for a in did(plan, Patch))


RUNS_SCRIPTS = Support(("script",))
COMMAND = {"argv": ["true"]}
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
    assert before == hashes(a_machine(users=[{"name": "ops"}], ntp={"servers": ["time.example"]}))
    assert before[0] == hashes(a_machine(archives=MIRROR))[0] != hashes(a_machine(preJoinCommands=[COMMAND]))[0]
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
