"""``nodewright status``: the fleet on one screen, and only what is wrong."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from controllers.kernel.refs import MACHINE_CLASS, Kind, Obj
from nodewright.cli.cluster.snapshot import KINDS, fill
from nodewright.reports.fleet.showing import MOST_LINES, as_lines, as_value
from nodewright.reports.fleet.summary import TOPS, Fleet, summarize
from nodewright.reports.tree.serving import Serving
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.claims import Claim, Holder
from tests.builders import NOW, Builder, cluster, machine, machine_deployment, machine_set, node

ALL = ("cluster", "machinedeployment", "machineset", "machine", "machinehealthcheck", "machineclass")
LEADER = Serving("nodewright-system/nodewright", Holder("x", "nodewright run", claims=tuple(map(Claim, ALL))))
QUOTA = ("QuotaExceeded", "hosts: 2 of 2 are used")


def fleet_of(*builders: Builder, serving: tuple[Serving, ...] | None = (LEADER,)) -> Fleet:
    cache = Cache(KINDS)
    built = [builder.build() for builder in builders]
    objects: dict[Kind, Iterable[Obj]] = {}
    for kind in KINDS:
        found = [obj for obj in built if obj["kind"] == kind.name]
        fill(cache, kind, found)
        if kind in (*TOPS, MACHINE_CLASS):
            objects[kind] = found
    return summarize(cache.view(NOW), objects, serving)


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
        "Objects   1 machinesets, 3 machines",
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
