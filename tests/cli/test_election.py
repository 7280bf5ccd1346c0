"""What the options of ``run`` make of several processes: who does what, and under which Lease."""

from __future__ import annotations

import pytest

from api.selectors import parse
from controllers.autoscaler.options import AutoscalerOptions, ClusterChoice
from controllers.kernel.reconciler import cluster_seen_by, clusters_served_by
from controllers.kernel.refs import Key
from nodewright.cli.election import ControllerOptions, Election, reconcilers_named, terms_of, work_named
from nodewright.cli.exits import USAGE, CliError
from nodewright.runtime.election.lease import Terms
from nodewright.runtime.settings.wiring import reconcilers

EVERY = [reconciler.name for reconciler in reconcilers()]


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("*", EVERY),
        ("machine", ["machine"]),
        (" machineset , machine ", ["machineset", "machine"]),
        ("*,-machine", [name for name in EVERY if name != "machine"]),
        ("-machine,*", [name for name in EVERY if name != "machine"]),
        ("*,machine,-machine", EVERY),
        ("*,-machine,machine", [name for name in EVERY if name != "machine"]),
    ],
)
def test_controllers_are_named_as_in_kube_controller_manager(text: str, chosen: list[str]) -> None:
    assert [reconciler.name for reconciler in reconcilers_named(text)] == chosen


@pytest.mark.parametrize("text", ["", "-machine", "nobody", "*,-nobody", "**"])
def test_controllers_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(CliError, match="controller") as refusal:
        reconcilers_named(text)
    assert refusal.value.code == USAGE
    assert "machineset" in refusal.value.hint


@pytest.mark.parametrize(
    ("controllers", "selector", "name"),
    [
        ("*", "", "nodewright"),
        ("machine", "", "nodewright-machine"),
        ("machineset,cluster", "", "nodewright-cluster-machineset"),
        ("cluster,machineset", "", "nodewright-cluster-machineset"),
        ("*,-machine", "", "nodewright-without-machine"),
    ],
)
def test_the_same_work_has_the_same_lease(controllers: str, selector: str, name: str) -> None:
    assert work_named(controllers, selector).lease == name


@pytest.mark.parametrize(
    ("controllers", "name"),
    [
        ("autoscaler", "nodewright-autoscaler.default.prod"),
        ("autoscaler,machine", "nodewright-autoscaler-machine"),
        ("*,autoscaler", "nodewright"),
    ],
)
def test_autoscalers_of_two_clusters_don_t_wait_for_each_other(controllers: str, name: str) -> None:
    """But where they do anything else beside, that must not be done twice."""
    scaling = ControllerOptions(lambda: AutoscalerOptions(cluster=Key("default", "prod")))
    assert work_named(controllers, "", options=scaling).lease == name


def test_requests_are_served_where_the_pods_are() -> None:
    prod = Key("default", "prod")
    scaling = ControllerOptions(lambda: AutoscalerOptions(cluster=prod))
    work = work_named("autoscaler,provisioningrequest", "", options=scaling)
    assert [cluster_seen_by(reconciler) for reconciler in work.reconcilers] == [prod, prod]
    assert {claim.cluster for claim in work.claims} == {"default/prod"}


@pytest.mark.parametrize(
    ("controllers", "choice", "name", "claimed"),
    [
        ("autoscaler", ClusterChoice(), "nodewright-autoscaler.clusters", ["autoscaler"]),
        ("autoscaler", ClusterChoice(home=False), "nodewright-autoscaler.clusters.alone", []),
        ("*,autoscaler", ClusterChoice(home=False), "nodewright", None),
    ],
)
def test_of_many_clusters_each_is_claimed_by_itself_whatever_the_lease(
    controllers: str, choice: ClusterChoice, name: str, claimed: list[str] | None
) -> None:
    """The Lease of a process only keeps those with the same options from competing."""
    work = work_named(controllers, "", options=ControllerOptions(lambda: AutoscalerOptions(clusters=choice)))
    assert work.lease == name
    assert claimed is None or [str(claim) for claim in work.claims] == claimed
    assert sum(clusters_served_by(reconciler) is not None for reconciler in work.reconcilers) == 1


def test_processes_for_other_labels_have_other_leases() -> None:
    def lease(labels: str) -> str:
        choice = ClusterChoice(parse(labels))
        return work_named("autoscaler", "", options=ControllerOptions(lambda: AutoscalerOptions(clusters=choice))).lease

    assert len({lease("tier=gold"), lease("tier=silver"), lease("")}) == 3


def test_each_shard_has_a_lease_however_its_selector_is_written() -> None:
    names = [work_named("machine", s).lease for s in ("zone in (a,b),!x", "!x, zone in (b, a)", "zone in (a)", "")]
    assert names[0] == names[1]
    assert len(set(names)) == 3
    assert all(name.startswith("nodewright-machine") for name in names)


def test_a_selector_for_controllers_that_look_at_whole_sets_is_refused() -> None:
    with pytest.raises(CliError, match=r"does not divide the work of .*machineset") as refusal:
        work_named("*", "zone=a")
    assert "--controllers=machine" in refusal.value.hint


def test_a_selector_that_can_not_be_read_is_refused() -> None:
    with pytest.raises(CliError, match="--machine-selector"):
        work_named("machine", "zone in a")


def test_without_options_every_process_stands_by_in_one_namespace() -> None:
    found = Election(True, Terms(), "", "").options(work_named("*", ""))
    assert (found.namespace, found.name, found.waits) == ("nodewright-system", "nodewright", True)
    assert [claim.controller for claim in found.claims] == sorted(EVERY)


def test_a_process_that_does_not_stand_by_holds_the_lease_all_the_same() -> None:
    found = Election(False, Terms(), "", "").options(work_named("*", ""))
    assert (found.name, found.waits) == ("nodewright", False)


def test_options_say_which_lease() -> None:
    found = Election(True, Terms(), "mine", "there").options(work_named("machine", ""))
    assert (found.namespace, found.name) == ("there", "mine")
    assert found.claims == work_named("machine", "").claims, "whatever its name is"


@pytest.mark.parametrize(
    ("terms", "says"),
    [
        (("15", "10s", "2s"), "--leader-elect-lease-duration: '15' is not a duration"),
        (("10s", "10s", "2s"), "lease duration (10 s) must be above the renew deadline (10 s)"),
    ],
)
def test_terms_that_can_not_work_are_refused(terms: tuple[str, str, str], says: str) -> None:
    with pytest.raises(CliError) as refusal:
        terms_of(*terms)
    assert says in refusal.value.message
    assert refusal.value.code == USAGE


def test_terms_are_durations() -> None:
    assert terms_of("1m", "30s", "500ms") == Terms(60, 30, 0.5)
