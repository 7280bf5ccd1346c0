"""``plan`` for control planes: the whole course of an upgrade, before anything is touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.controlplane.course import course_of
from controllers.controlplane.reconciler import ControlPlaneReconciler
from controllers.kernel.refs import CONTROL_PLANE
from nodewright.cli.cluster.snapshot import fill
from nodewright.cli.dryrun.foresee import DryRun, Prospect
from nodewright.cli.dryrun.in_memory import InMemoryCluster
from nodewright.cli.dryrun.showing import DisplayOptions, as_tree
from nodewright.cli.main import run
from nodewright.reports.tree.drawing import rows
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.settings.wiring import kinds_of
from nodewright.runtime.settings.wiring import reconcilers as every_reconciler
from tests.builders.body import Builder
from tests.builders.machines import MachineBuilder
from tests.builders.objects import machine_deployment
from tests.controllers.controlplane.test_reconciler import (
    KEY,
    ControlPlaneBuilder,
    Etcd,
    cluster,
    members,
    three,
    world,
)

MANIFEST = """\
apiVersion: cluster.k8s.io/v1alpha1
kind: Cluster
metadata: {name: prod}
spec:
  controlPlaneEndpoint: {host: 10.0.0.9, port: 6443}
  failureDomains: [east, west, north]
---
apiVersion: cluster.k8s.io/v1alpha1
kind: ControlPlane
metadata: {name: cp}
spec:
  clusterName: prod
  replicas: 3
  version: 1.36.3
  template:
    spec:
      providerConfig: {value: {apiVersion: simulated.nodewright.dev/v1alpha1, kind: SimulatedMachineConfig}}
"""


def foreseen(*objects: Builder) -> Prospect:
    wanted = (ControlPlaneReconciler(), *every_reconciler())
    cache = Cache(kinds_of(wanted))
    built = json.loads(json.dumps([obj.build() for obj in objects]))
    for kind in cache.stores:
        fill(cache, kind, [obj for obj in built if obj["kind"] == kind.name])
    prospects = DryRun(InMemoryCluster(cache), wanted).foresee()
    return next(prospect for prospect in prospects if prospect.kind == CONTROL_PLANE)


def course(*objects: Builder) -> list[str]:
    """As it is drawn."""
    tree = as_tree([foreseen(*objects)], "t", DisplayOptions())
    drawn = [
        f"{prefix}{branch.name}{f' — {branch.message}' if branch.message else ''}" for prefix, branch in rows(tree)
    ]
    begin = next((n for n, line in enumerate(drawn) if "the course" in line), len(drawn))
    return [line.strip() for line in drawn[begin + 1 :]]


def pool(name: str, kubelet: str) -> Builder:
    found = machine_deployment(name).in_cluster("prod")
    found.spec["replicas"] = 0
    found.spec["template"]["spec"] = {**found.spec["template"].get("spec", {}), "versions": {"kubelet": kubelet}}
    return found


IN_PLACE = """\
├─1. Machine cp-1 is updated in place
│ ├─etcd is saved in /var/backups/etcd
│ ├─kubeadm upgrade apply v1.37.0, for the whole cluster's settings too
│ └─its kubelet becomes 1.37.0, and is restarted
├─2. Machine cp-2 is updated in place
│ ├─etcd is saved in /var/backups/etcd
│ ├─kubeadm upgrade apply v1.37.0
│ └─its kubelet becomes 1.37.0, and is restarted
├─3. Machine cp-3 is updated in place
│ ├─etcd is saved in /var/backups/etcd
│ ├─kubeadm upgrade apply v1.37.0
│ └─its kubelet becomes 1.37.0, and is restarted
├─4. MachineDeployment web goes on
│ └─it waits for control plane 1.37 until then
├─5. MachineDeployment zoo gets 1.37.0
│ └─the next one follows once it is rolled out
└─6. MachineDeployment db gets 1.37.0
└─the next one follows once it is rolled out"""


def test_the_course_of_an_upgrade_in_place() -> None:
    control_plane = ControlPlaneBuilder(
        version="1.37.0",
        rollout={"inPlace": "Require"},
        etcd={"snapshot": {"path": "/var/backups/etcd"}},
        upgrade="Together",
        upgradeOrder=["zoo"],
    )
    machines = three(control_plane)
    for each in machines:
        each.status["versions"] = {"kubelet": "v1.36.0"}
    pools = (pool("web", "1.37.0"), pool("db", "1.36.0"), pool("zoo", "1.36.0"))
    drawn = course(control_plane, cluster(), *machines, *pools)
    assert drawn == IN_PLACE.splitlines()
    assert max(map(len, drawn)) <= 74, "with two levels of indentation it fits 80 columns"


def test_the_course_of_an_upgrade_by_replacement_over_zones() -> None:
    control_plane = ControlPlaneBuilder(version="1.36.1", failureDomains=["a", "b", "c"])
    machines = [each.in_domain(zone) for each, zone in zip(three(control_plane), "abc", strict=True)]
    stages = foreseen(control_plane, cluster(), *machines).course.stages  # type: ignore[union-attr]
    joins = [stage for stage in stages if " joins in failure domain " in stage.what]
    goes = [stage.what for stage in stages if stage.what.endswith(" goes")]
    assert [stage.what for stage in stages] == [
        what for pair in zip((stage.what for stage in joins), goes, strict=True) for what in pair
    ], "one joins, then one goes"
    assert sorted(goes) == [f"Machine cp-{n} goes" for n in (1, 2, 3)]
    assert sorted(stage.what[-1] for stage in joins) == ["a", "b", "c"]
    assert len({stage.what.split()[1] for stage in joins}) == 3
    raised = [how for stage in stages for how in stage.how if "is raised to 1.36.1" in how]
    assert len(raised) == 1
    assert raised[0] in joins[0].how


def worker(kubelet: str) -> MachineBuilder:
    found = MachineBuilder("worker-1").in_cluster("prod").kubelet(kubelet)
    found.status["versions"] = {"kubelet": kubelet}
    return found


@pytest.mark.parametrize(
    ("version", "objects", "why"),
    [
        ("1.38.0", (), "skips a minor version; go to 1.37 before"),
        ("1.35.0", (), "can't go back"),
        ("1.37.0", (worker("1.33.1"),), "worker-1 (1.33.1); upgrade them first"),
    ],
)
def test_what_forbids_an_upgrade_is_seen_before_it_begins(version: str, objects: tuple[Builder, ...], why: str) -> None:
    control_plane = ControlPlaneBuilder(version=version)
    [line] = course(control_plane, cluster(), *three(control_plane), *objects)
    assert line.startswith("└─not begun — ")
    assert why in line


def test_one_that_is_as_desired_has_no_course() -> None:
    control_plane = ControlPlaneBuilder()
    assert course(control_plane, cluster(), *three(control_plane)) == []


def test_a_provider_that_may_refuse_in_place_is_reckoned_with() -> None:
    control_plane = ControlPlaneBuilder(version="1.36.1", rollout={"inPlace": "Prefer"})
    lines = course(control_plane, cluster(), *three(control_plane))
    assert sum("if its provider can't: another Machine joins, then it goes" in line for line in lines) == 3


def test_a_new_control_plane_is_shown_from_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cp.yaml"
    file.write_text(MANIFEST)
    assert run(["plan", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "kubeadm init, 1.36.3" in shown
    assert shown.count("kubeadm join, 1.36.3") == 2
    assert "etcd was not read" in shown
    assert run(["plan", str(file), "-o", "json"]) == 0
    objects: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["objects"]
    stages = next(each for each in objects if each["kind"] == "ControlPlane")["course"]["stages"]
    assert [stage["what"].rsplit(" ", 1)[0].split(" ", 2)[2] for stage in stages] == [
        "is made in failure domain",
        "joins in failure domain",
        "joins in failure domain",
    ]


@given(
    st.sampled_from((1, 3, 5)),
    st.sampled_from(("1.36.0", "1.36.9", "1.37.0", "1.38.0")),
    st.sampled_from(("Never", "Prefer", "Require")),
    st.sampled_from((0, 1)),
    st.tuples(*[st.booleans()] * 3),
)
def test_the_course_names_each_machine_once_and_touches_nothing(
    replicas: int, version: str, in_place: str, surge: int, healthy: tuple[bool, ...]
) -> None:
    control_plane = ControlPlaneBuilder(
        replicas=replicas, version=version, rollout={"inPlace": in_place, "maxSurge": surge}
    )
    view = world(control_plane, *three(control_plane))
    observed = ControlPlaneReconciler(Etcd(members(*healthy))).observe(KEY, view, None)
    assert observed is not None
    before = observed.state
    found = course_of(observed, view)
    assert observed.state == before
    assert "steps are not looked at" not in found.held
    whats = [stage.what for stage in found.stages]
    touched = [what.split()[1] for what in whats if what.endswith((" goes", " in place"))]
    if all(healthy) and not found.held:  # one that is sick may be updated, and then replaced all the same
        assert len(touched) == len(set(touched))
        assert sum(" joins" in what for what in whats) - sum(what.endswith(" goes") for what in whats) == replicas - 3
        assert version == "1.36.0" or set(touched) == {"cp-1", "cp-2", "cp-3"}
