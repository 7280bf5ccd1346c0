"""``-l`` of ``status`` and ``plan``: what the labels match, and what belongs to it."""

from __future__ import annotations

import pytest

from api.selectors import parse
from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_CLASS, MACHINE_DEPLOYMENT, MACHINE_SET, Kind, Obj, key_of
from nodewright.cli import main
from nodewright.cli.exits import USAGE
from nodewright.reports.chosen import chosen
from tests.builders import Builder, cluster, machine, machine_deployment, machine_set
from tests.cli.test_status import QUOTA, fleet_of, text_of

KINDS = (MACHINE, MACHINE_SET, MACHINE_DEPLOYMENT, CLUSTER, MACHINE_CLASS)


def objects_of(*builders: Builder) -> dict[Kind, list[Obj]]:
    built = [builder.build() for builder in builders]
    return {kind: [obj for obj in built if obj["kind"] == kind.name] for kind in KINDS}


def names_of(objects: dict[Kind, list[Obj]], selector: str) -> set[str]:
    return {key_of(obj).name for found in chosen(objects, parse(selector)).values() for obj in found}


def two_pools() -> list[Builder]:
    web = machine_deployment("web").labelled(team="a")
    first, other = machine_set("web-1").of(web), machine_set("other")
    return [machine("m-1").of(first), machine("m-2").of(other), web, first, other]


def test_an_owner_brings_all_that_it_owns() -> None:
    assert names_of(objects_of(*two_pools()), "team=a") == {"web", "web-1", "m-1"}


def test_without_labels_all_are_chosen() -> None:
    assert names_of(objects_of(*two_pools()), "") == {"web", "web-1", "m-1", "other", "m-2"}


def test_a_cluster_brings_what_names_it_in_its_namespace() -> None:
    edge = cluster("edge").labelled(site="north")
    inside = machine_set("pool").in_cluster("edge")
    elsewhere = machine_set("far", namespace="far").in_cluster("edge")
    assert names_of(objects_of(inside, elsewhere, edge), "site=north") == {"edge", "pool"}


def test_an_owner_of_another_namespace_brings_nothing() -> None:
    web = machine_deployment("web").labelled(team="a")
    far = machine_set("x").of(web)
    far.metadata["namespace"] = "far"
    assert names_of(objects_of(web, far), "team=a") == {"web"}


def test_status_shows_what_is_wrong_below_a_chosen_object_only() -> None:
    sick = machine_set("pool").labelled(team="a")
    other = machine_set("other")
    broken = [machine(f"{owner.metadata['name']}-1").of(owner).pending(*QUOTA) for owner in (sick, other)]
    fleet = fleet_of(sick, other, *broken, selector="team=a")
    assert [(each.below, each.object) for each in fleet.problems] == [("MachineSet/pool", "Machine/pool-1")]
    assert "1 machineset, 1 machine" in text_of(fleet)


def test_a_chosen_machine_stands_alone_where_its_owner_is_not_chosen() -> None:
    pool = machine_set("pool")
    fleet = fleet_of(pool, machine("m-1").of(pool).labelled(rack="7").pending(*QUOTA), selector="rack=7")
    assert [(each.below, each.object) for each in fleet.problems] == [("", "Machine/m-1")]


@pytest.mark.parametrize("command", ["status", "plan"])
def test_labels_that_can_t_be_read_are_a_usage_error(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([command, "-l", "a in ("]) == USAGE
    assert "-l: " in capsys.readouterr().err


def test_a_plan_of_files_shows_the_chosen_objects_only(capsys: pytest.CaptureFixture[str]) -> None:
    files = ["examples/scenarios/quota.yaml", "examples/scenarios/zone-outage.yaml"]
    assert main.run(["plan", *files, "-l", "pool=crowd"]) == 0
    shown = capsys.readouterr().out
    assert "crowd" in shown
    assert "spread" not in shown
