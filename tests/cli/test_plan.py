"""``plan``: the controllers' own decisions on paper, for manifests and for a cluster as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from api import names
from controllers.kernel.actions import Create, Delete, Patch, Scale
from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, NODE, Key, Ref
from nodewright.cli.cluster.snapshot import fill, objects_of
from nodewright.cli.dryrun.foresee import DryRun, Prospect, describe
from nodewright.cli.dryrun.in_memory import InMemoryCluster, merged
from nodewright.cli.dryrun.showing import DisplayOptions, as_tree
from nodewright.cli.main import run
from nodewright.reports.tree.drawing import rows
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.settings.wiring import kinds_of
from nodewright.runtime.settings.wiring import reconcilers as every_reconciler
from tests.builders import Builder, cluster, machine, machine_set, node

EXAMPLE = "nodewright/cli/examples/cluster.yaml"


def paper_with(*objects: Builder) -> InMemoryCluster:
    cache = Cache(kinds_of(every_reconciler()))
    built = [obj.build() for obj in objects]
    for kind in cache.stores:
        fill(cache, kind, [obj for obj in built if obj["kind"] == kind.name])
    return InMemoryCluster(cache)


def foresee(*objects: Builder) -> dict[str, Prospect]:
    return {f"{p.kind.name}/{p.key.name}": p for p in DryRun(paper_with(*objects), every_reconciler()).foresee()}


def loud(prospect: Prospect) -> list[str]:
    return [deed.what for deed in prospect.deeds if not deed.quiet]


def planned(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    code = run(["plan", "-o", "json", *arguments])
    return code, json.loads(capsys.readouterr().out)["objects"]


def test_the_example_on_an_empty_cluster_makes_a_set_three_machines_and_three_hosts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, objects = planned(capsys, EXAMPLE)
    done = [a["what"] for o in objects for a in o["actions"] if not a["quiet"]]
    assert code == 0
    assert sum(what.startswith("create MachineSet workers-") for what in done) == 1
    assert sum(what.startswith("create Machine workers-") for what in done) == 3
    assert sum(what.startswith("create host for workers-") for what in done) == 3
    assert all(a["why"] for o in objects for a in o["actions"])


def test_the_same_manifests_give_the_same_plan_twice(capsys: pytest.CaptureFixture[str]) -> None:
    def shape() -> list[tuple[str, int]]:
        return [(o["kind"], len(o["actions"])) for o in planned(capsys, EXAMPLE)[1]]

    assert shape() == shape()


def test_a_wrong_manifest_is_refused_with_its_faults_and_nothing_is_worked_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(Path(EXAMPLE).read_text().replace("replicas: 3", "replicas: -3"))
    assert run(["plan", str(file)]) == 1
    shown = capsys.readouterr()
    assert "spec.replicas" in shown.out
    assert "nothing was worked out" in shown.err


def test_files_without_an_object_of_ours_are_a_usage_error(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n")
    assert run(["plan", str(file)]) == 2


def test_a_set_that_is_too_big_names_its_victims_and_why() -> None:
    web = machine_set("web")
    web.spec["replicas"] = 1
    machines = [machine(f"web-{i}").of(web).ready() for i in range(2)]
    machines.append(machine("web-2").of(web).marked_for_deletion().ready())
    nodes = [node(f"node-web-{i}").of(m).ready() for i, m in enumerate(machines)]
    deeds = loud(foresee(web, *machines, *nodes)["MachineSet/web"])
    assert "delete Machine web-2" in deeds
    assert sum(deed.startswith("delete Machine") for deed in deeds) == 2


def test_a_machine_with_a_config_nobody_knows_cannot_go_on() -> None:
    odd = machine("odd")
    odd.spec["providerConfig"] = {"value": {"apiVersion": "acme.dev/v1", "kind": "Cfg"}}
    prospect = foresee(odd)["Machine/odd"]
    assert prospect.failed
    assert "acme.dev/v1" in prospect.waits_for


def test_nothing_is_created_twice_on_paper() -> None:
    in_memory = paper_with(machine_set("web"))
    DryRun(in_memory, every_reconciler()).foresee()
    before = len(objects_of(in_memory.cache, MACHINE))
    assert before > 0
    assert len({m["metadata"]["name"] for m in objects_of(in_memory.cache, MACHINE)}) == before


def test_apply_keeps_what_others_have_set_and_counts_a_changed_spec() -> None:
    web = machine_set("web").annotated("others", "kept")
    in_memory = paper_with(web)
    changed = web.build()
    changed["metadata"]["annotations"] = {"mine": "new"}
    changed["spec"]["replicas"] = 9
    assert in_memory.apply(MACHINE_SET, changed) is False
    live = in_memory.view().get(MACHINE_SET, Key("default", "web"))
    assert live is not None
    assert live["metadata"]["annotations"] == {"others": "kept", "mine": "new"}
    assert live["metadata"]["generation"] == 2


def test_a_deleted_object_with_a_finalizer_stays_until_the_finalizer_goes() -> None:
    in_memory = paper_with(machine("m"))
    ref = Ref(MACHINE, Key("default", "m"), "uid-m")
    in_memory.perform(Delete(ref, "away"))
    live = in_memory.view().get(MACHINE, ref.key)
    assert live is not None
    assert live["metadata"]["deletionTimestamp"]
    in_memory.perform(Patch(ref, {"metadata": {"finalizers": None}}, "done"))
    assert in_memory.view().get(MACHINE, ref.key) is None


def test_what_an_object_owned_goes_with_it() -> None:
    web = machine_set("web")
    in_memory = paper_with(web, machine("web-0").of(web).finalized_by())
    in_memory.perform(Delete(Ref(MACHINE_SET, Key("default", "web")), "away"))
    assert objects_of(in_memory.cache, MACHINE) == []


def test_the_real_objects_are_not_touched_by_what_happens_on_paper() -> None:
    original = machine_set("web").build()
    cache = Cache(kinds_of(every_reconciler()))
    fill(cache, MACHINE_SET, [original])
    InMemoryCluster(cache).perform(Scale(Ref(MACHINE_SET, Key("default", "web")), 99, "more"))
    assert original["spec"]["replicas"] != 99


@pytest.mark.parametrize(
    ("value", "patch", "result"),
    [
        ({"a": 1}, {"a": None}, {}),
        ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": 1}, {"a": {"b": 2}}, {"a": {"b": 2}}),
    ],
)
def test_patches_on_paper_follow_rfc_7386(value: object, patch: object, result: object) -> None:
    assert merged(value, patch) == result


def test_actions_read_as_people_say_them() -> None:
    ref = Ref(MACHINE_DEPLOYMENT, Key("ns", "web"))
    assert describe(Create(NODE, {"metadata": {"name": "n"}}, "why")) == "create Node n"
    assert describe(Scale(ref, 3, "why")) == "scale MachineDeployment web to 3"
    patch = {"metadata": {"labels": {"a.b/c": "d"}, "finalizers": None}}
    said = describe(Patch(ref, patch, "why"))
    assert said == 'patch MachineDeployment web: metadata.finalizers (removed), metadata.labels["a.b/c"]'


def test_many_objects_with_the_same_future_are_one_branch() -> None:
    web = machine_set("web")
    web.spec["replicas"] = 20
    prospects = DryRun(paper_with(web), every_reconciler()).foresee()
    shown = [branch.name for _, branch in rows(as_tree(prospects, "t", DisplayOptions()))]
    every = [branch.name for _, branch in rows(as_tree(prospects, "t", DisplayOptions(everything=True)))]
    assert any(name.startswith("20 Machines like") for name in shown)
    assert sum(name.startswith("Machine/") for name in every) == 20


def shown(*objects: Builder, everything: bool = False) -> list[str]:
    prospects = DryRun(paper_with(*objects), every_reconciler()).foresee()
    found = [branch for _, branch in rows(as_tree(prospects, "t", DisplayOptions(everything)))]
    return [": ".join(part for part in (b.name, b.reason, b.message) if part) for b in found]


def test_a_machine_that_waits_for_a_quota_says_so_beside_the_host_it_would_get() -> None:
    waiting = machine("m").condition("InfrastructureReady", "False", "QuotaExceeded", "cores: 8 of 8")
    lines = shown(waiting)
    assert lines.index("at present: QuotaExceeded: cores: 8 of 8") < next(
        i for i, line in enumerate(lines) if line.startswith("create host for m")
    )


def test_a_machine_without_trouble_says_none() -> None:
    coming = machine("m").condition("InfrastructureReady", "False", "Provisioning", "the provider was asked for a host")
    assert not any(line.startswith("at present") for line in shown(coming))


def test_notes_are_told_on_request_only() -> None:
    web = machine_set("web")
    assert not any(line.startswith("note") for line in shown(web))
    assert any(line.startswith("note: ") for line in shown(web, everything=True))


def test_nothing_to_do_is_said() -> None:
    shown = [branch.name for _, branch in rows(as_tree([], "If nothing is changed", DisplayOptions()))]
    assert shown == ["If nothing is changed", "nothing to do: everything is as it is declared"]


def test_a_machine_whose_nodes_live_elsewhere_is_not_taken_for_one_without_a_node() -> None:
    """A dry run does not see its pods: it must not foretell that the host goes undrained."""
    elsewhere = cluster("prod").finalized_by(names.CLUSTER_FINALIZER)
    elsewhere.status["kubeconfigSecret"] = "prod-kubeconfig"
    going = machine("m-1").in_cluster("prod").ready().deleting(5, names.MACHINE_FINALIZER)
    prospect = foresee(elsewhere, going)["Machine/m-1"]
    assert loud(prospect) == []
    assert "Cluster default/prod can't be reached" in prospect.waits_for
