"""``nodewright status``: the fleet on one screen, and only what is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest

from api import names
from api.selectors import parse
from controllers.kernel.refs import MACHINE_CLASS, Kind, Obj
from nodewright.cli.cluster.snapshot import KINDS, fill
from nodewright.reports.chosen import chosen
from nodewright.reports.fleet.showing import MOST_LINES, as_lines, as_value
from nodewright.reports.fleet.summary import TOPS, Fleet, Platform, summarize
from nodewright.reports.tree.serving import Ended, Serving, ended
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.election.claims import Claim, Holder
from nodewright.runtime.fleet.findings import Findings, Usage
from tests.builders import NOW, Builder, cluster, machine, machine_deployment, machine_set, node

ALL = ("cluster", "machinedeployment", "machineset", "machine", "machinehealthcheck", "machineclass")
LEADER = Serving("nodewright-system/nodewright", Holder("x", "nodewright run", claims=tuple(map(Claim, ALL))))
QUOTA = ("QuotaExceeded", "hosts: 2 of 2 are used")


def fleet_of(
    *builders: Builder,
    serving: tuple[Serving, ...] | None = (LEADER,),
    before: tuple[Ended, ...] = (),
    selector: str = "",
) -> Fleet:
    cache = Cache(KINDS)
    built = [builder.build() for builder in builders]
    objects: dict[Kind, Iterable[Obj]] = {}
    for kind in KINDS:
        found = [obj for obj in built if obj["kind"] == kind.name]
        fill(cache, kind, found)
        if kind in (*TOPS, MACHINE_CLASS):
            objects[kind] = found
    return summarize(cache.view(NOW), chosen(objects, parse(selector)), serving, before)


def text_of(fleet: Fleet, width: int = 80) -> str:
    return "\n".join(str(line) for line in as_lines(fleet, width))


def healthy(name: str = "web") -> list[Builder]:
    machines = [machine(f"{name}-{n}").of(machine_set(name)).ready() for n in range(3)]
    nodes = [node(f"node-{name}-{n}").ready() for n in range(3)]
    return [machine_set(name).observed(), *machines, *nodes]


def test_a_healthy_fleet_is_a_few_lines() -> None:
    fleet = fleet_of(*healthy())
    assert fleet.problems == ()
    assert text_of(fleet).splitlines() == [
        "Objects   1 machineset, 3 machines",
        "Machines  3 Ready",
        "Decides   nodewright run, Lease nodewright-system/nodewright",
        "✔ nothing is wrong",
    ]


def test_only_what_is_wrong_is_shown_with_its_cause_age_and_next_step() -> None:
    owner = machine_set("pool")
    sick = [machine(f"p-{n}").of(owner).pending(*QUOTA) for n in range(5)]
    fleet = fleet_of(*healthy(), owner, *sick)
    (problem,) = fleet.problems
    assert (problem.below, problem.object, problem.reason) == ("MachineSet/pool", "5 Machines", "QuotaExceeded")
    text = text_of(fleet)
    assert "web" not in text
    assert "hosts: 2 of 2 are used" in text
    assert "→ Free or raise the quota" in text
    assert "for 60s" in text


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("count", [1, 300])
def test_it_fits_the_screen_for_one_and_for_hundreds(width: int, count: int) -> None:
    objects: list[Builder] = []
    for n in range(count):
        owner = machine_set(f"s-{n}", namespace=f"team-{n}")
        objects += [owner, machine(f"m-{n}", namespace=f"team-{n}").of(owner).pending(*QUOTA)]
    lines = [str(line) for line in as_lines(fleet_of(*objects), width)]
    assert len(lines) <= MOST_LINES
    assert max(len(line) for line in lines) <= max(width, 80)
    assert ("more problem" in lines[-1]) == (count > 1)


def test_programs_get_every_problem() -> None:
    owner = machine_set("pool")
    value = as_value(fleet_of(owner, machine("p").of(owner).failed()))
    assert value["machines"] == {"failed": 1}
    assert [each["object"] for each in value["problems"]] == ["Machine/p"]
    assert value["servedBy"][0]["holder"] == "nodewright run"


def test_the_fullest_quotas_are_named_and_programs_get_all() -> None:
    usages = (
        *(Usage("openstack/prod", f"r{n}", n, 10) for n in range(5)),
        Usage("openstack/prod", "ram", 9, 10, "GiB"),
    )
    serving = replace(LEADER, findings=Findings(quotas=usages))
    fleet = fleet_of(*healthy(), serving=(serving, serving))
    assert fleet.problems == (), "a limit that is nearly reached is no problem yet"
    text = " ".join(text_of(fleet).split())
    assert "Quotas openstack/prod ram 9 of 10 GiB, openstack/prod r4 4 of 10, " in text
    assert "openstack/prod r2 2 of 10, 2 more ✔" in text
    first, *rest = as_value(fleet)["quotas"]
    assert first == {"account": "openstack/prod", "resource": "ram", "used": 9, "limit": 10, "unit": "GiB"}
    assert len(rest) == 5, "each once, though two processes say it"
    assert "Quotas" not in text_of(fleet_of(*healthy()))


def test_what_nobody_serves_is_one_line_for_a_kind() -> None:
    fleet = fleet_of(*healthy("a"), *healthy("b"), serving=())
    assert {problem.object for problem in fleet.problems} == {"2 machinesets", "6 machines"}
    assert {problem.reason for problem in fleet.problems} == {"NotServed"}
    assert "nodewright run" in fleet.problems[0].next_step


def test_leases_that_may_not_be_read_are_no_problem_of_the_fleet() -> None:
    assert fleet_of(*healthy(), serving=None).problems == ()


def test_what_belongs_to_a_cluster_is_told_once() -> None:
    deployment = machine_deployment("web").in_cluster("dev")
    owner = machine_set("web-abc").owned_by(deployment).in_cluster("dev")
    sick = machine("web-abc-0").of(owner).in_cluster("dev").failed()
    assert len(fleet_of(cluster("dev"), deployment, owner, sick).problems) == 1


@pytest.mark.parametrize("count", [1, 300])
def test_machines_whose_set_is_gone_are_not_forgotten(count: int) -> None:
    """`kubectl delete ms` takes the set away at once, and its Machines go on draining."""
    gone = machine_set("gone")
    blocked = "blocked: default/web (PodDisruptionBudget default/keep)"
    machines = [machine(f"m-{n}").of(gone).deleting(60) for n in range(count)]
    for each in machines:
        each.condition("Ready", "False", "DrainBlocked", blocked).condition("Deleting", "True", "DrainBlocked", blocked)
    (problem,) = fleet_of(*machines).problems
    assert (problem.reason, problem.below) == ("DrainBlocked", "")
    assert "default/keep" in problem.message
    in_cluster = [each.in_cluster("dev") for each in machines]
    assert [found.reason for found in fleet_of(cluster("dev"), *in_cluster).problems] == ["DrainBlocked"]


def lease_of(holder: Holder, *, renewed: int, held: bool = True) -> Obj:
    """Renewed so many seconds before NOW; ``held`` False: released then."""
    at = (NOW - timedelta(seconds=renewed)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "metadata": {
            "name": "nodewright",
            "namespace": "nodewright-system",
            "annotations": {names.LEASE_HOLDER_ANNOTATION: holder.annotation()},
        },
        "spec": {"holderIdentity": holder.identity if held else "", "renewTime": at, "leaseDurationSeconds": 15},
    }


@pytest.mark.parametrize("held", [True, False], ids=["killed", "released"])
def test_silence_began_when_the_last_process_ended(held: bool) -> None:
    before = ended([lease_of(LEADER.holder, renewed=1200, held=held)], NOW)
    fleet = fleet_of(*healthy(), serving=(), before=before)
    assert {problem.since for problem in fleet.problems} == {NOW - timedelta(seconds=1200)}
    assert "NotServed  for 20m" in text_of(fleet)


def test_silence_began_with_the_object_where_nothing_has_ever_run_or_ended_before() -> None:
    owner = machine_set("pool").created(300)
    (problem,) = fleet_of(owner, serving=()).problems
    assert problem.since == NOW - timedelta(seconds=300)
    (problem,) = fleet_of(owner, serving=(), before=(Ended(LEADER.holder, NOW - timedelta(hours=5)),)).problems
    assert problem.since == NOW - timedelta(seconds=300)


def test_a_process_of_another_namespace_says_nothing_about_this_one() -> None:
    elsewhere = Holder("x", "nodewright run", claims=tuple(Claim(name, namespace="other") for name in ALL))
    owner = machine_set("pool").created(300)
    (problem,) = fleet_of(owner, serving=(), before=(Ended(elsewhere, NOW - timedelta(seconds=5)),)).problems
    assert problem.since == NOW - timedelta(seconds=300)


def test_a_lease_that_is_held_has_not_ended() -> None:
    assert ended([lease_of(LEADER.holder, renewed=3)], NOW) == ()
    assert ended([{"metadata": {}, "spec": []}, {"spec": {"renewTime": "soon"}}], NOW) == ()


def test_the_autoscaler_is_missed_since_it_ended() -> None:
    group = machine_set("pool").observed().annotated(names.AUTOSCALER_MAX_ANNOTATION, "9").created(7200)
    scaler = Holder("a", "nodewright run", claims=(Claim("autoscaler"),))
    (line,) = fleet_of(group, before=(Ended(scaler, NOW - timedelta(seconds=90)),)).held
    assert (line.reason, line.since) == ("AutoscalerNotRunning", NOW - timedelta(seconds=90))
    (line,) = fleet_of(group).held
    assert line.since == NOW - timedelta(seconds=7200)


def test_the_server_and_its_crds_are_a_line() -> None:
    served = {"machines.cluster.k8s.io": ("v1alpha1",), "controlplanes.cluster.k8s.io": ("v1alpha1",)}
    fleet = replace(fleet_of(*healthy()), platform=Platform("v1.34.2", served))
    assert "Server    v1.34.2, 2 CRDs (v1alpha1)" in text_of(fleet).splitlines()
    assert as_value(fleet)["crds"]["machines.cluster.k8s.io"] == ["v1alpha1"]


def test_a_crd_that_the_server_lacks_is_named_with_the_command_that_brings_it() -> None:
    served: dict[str, tuple[str, ...]] = {
        "machines.cluster.k8s.io": ("v1alpha1",),
        "controlplanes.cluster.k8s.io": (),
    }
    text = text_of(replace(fleet_of(*healthy()), platform=Platform("v1.34.2", served)))
    assert "Missing   controlplanes.cluster.k8s.io: `nodewright install` brings them" in text
    assert "Server    v1.34.2, 1 CRD (v1alpha1)" in text
