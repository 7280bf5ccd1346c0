"""``nodewright upgrade``: which versions may come next, what waits for what, and whether an installation is safe."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from api import names
from controllers.kernel.refs import (
    CONTROL_PLANE,
    MACHINE,
    MACHINE_CLASS,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    Key,
    Kind,
    Obj,
)
from nodewright.apiserver.app import APIServer, APIServerConfig
from nodewright.cli.main import run
from nodewright.cli.upgrading.kubernetes import Cluster, cluster_of, judged, next_versions
from nodewright.cli.upgrading.own import Controllers, Verdict, definition_of, hindrances
from nodewright.cli.upgrading.planning import on_paper, plan_of
from nodewright.cli.upgrading.providers import answers_by
from nodewright.cli.upgrading.showing import plan_data, plan_tree
from nodewright.crds import load_crds
from nodewright.reports.tree.drawing import sentences
from nodewright.runtime.cache.cache import Cache, CacheView
from providers.base.registry import Registry

PROD = Key("default", "prod")


def obj(name: str, spec: dict[str, Any], status: dict[str, Any] | None = None, owner: str = "") -> Obj:
    meta: dict[str, Any] = {"name": name, "namespace": "default", "uid": f"u-{name}"}
    meta["labels"] = {names.CLUSTER_NAME_LABEL: "prod"}
    if owner:
        meta["ownerReferences"] = [{"uid": f"u-{owner}", "controller": True}]
    return {"metadata": meta, "spec": spec, "status": status or {}}


def machine(name: str, version: str, *, plane: bool = False, owner: str = "") -> Obj:
    asked = {"kubelet": version, **({"controlPlane": version} if plane else {})}
    return obj(name, {"versions": asked}, {"versions": {"kubelet": version}}, owner)


def workers(name: str, version: str, **rolling: str) -> Obj:
    template = {"metadata": {}, "spec": {"versions": {"kubelet": version}}}
    return obj(name, {"template": template, "strategy": {"rollingUpdate": rolling}})


def prod(plane: str, *rest: tuple[Kind, Obj], runs: Iterable[str] = ()) -> Cluster:
    """A ControlPlane of a version, whose Machines run ``runs``."""
    made = obj("cp", {"version": plane, "rollout": {"inPlace": "Prefer"}})
    machines = [machine(f"cp-{n}", version, plane=True, owner="cp") for n, version in enumerate(runs or [plane])]
    world: dict[Kind, list[Obj]] = {CONTROL_PLANE: [made], MACHINE: machines}
    for kind, each in rest:
        world.setdefault(kind, []).append(each)
    return cluster_of(PROD, world)


SIMULATED = "simulated.nodewright.dev/v1alpha1"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("config", "answer"),
    [
        ({"apiVersion": SIMULATED, "kind": "SimulatedMachineConfig"}, "changes hosts in place"),
        (
            {"apiVersion": SIMULATED, "kind": "SimulatedMachineConfig", "updates": "Replace"},
            "makes other hosts: simulated hosts with updates: Replace are never changed in place",
        ),
        ({"apiVersion": "ssh.nodewright.dev/v1alpha1", "kind": "SSHMachineConfig", "pool": "a"}, "changes hosts"),
        ({"apiVersion": "nobody.example.com/v1", "kind": "Nothing"}, "says only when it is asked to change the host"),
        ({"apiVersion": SIMULATED, "kind": "SimulatedMachineConfig", "updates": 3}, "says only when it is asked"),
        ("no config", "unknown: "),
    ],
)
def test_each_provider_is_asked_whether_it_changes_a_host_in_place(config: Any, answer: str) -> None:
    template = {"metadata": {}, "spec": {"versions": {"kubelet": "1.35.3"}, "providerConfig": {"value": config}}}
    pool = obj("pool", {"template": template, "strategy": {"rollingUpdate": {"inPlace": "Prefer"}}})
    world: dict[Kind, list[Obj]] = {MACHINE_DEPLOYMENT: [pool]}
    cluster = cluster_of(PROD, world, answers_by(CacheView(Cache([MACHINE_CLASS]), NOW), Registry.installed()))
    plan = plan_of(cluster, "1.36.1")
    assert f"provider — {answer}" in "\n".join(line.plain for line in sentences(plan_tree(plan), 200))
    assert plan_data(plan)["workers"][0]["provider"]["inPlace"] is {"c": True, "m": False}.get(answer[0])


def test_a_machine_class_is_asked_for_by_its_config() -> None:
    cache = Cache([MACHINE_CLASS])
    body = {"apiVersion": SIMULATED, "kind": "SimulatedMachineConfig", "updates": "Replace"}
    made = {"metadata": {"name": "small", "namespace": "default", "uid": "u"}, "providerSpec": {"value": body}}
    cache.listed(MACHINE_CLASS, [made], "1")
    spec = {"providerConfig": {"valueFrom": {"machineClass": {"name": "small"}}}}
    ask = answers_by(CacheView(cache, NOW), Registry.installed())
    assert ask(spec, "default").in_place is False
    assert ask(spec, "elsewhere").in_place is None


def test_the_next_patch_and_the_next_minor_version_may_come() -> None:
    patch, minor = next_versions(prod("1.35.3"))
    assert (patch.version, patch.refused) == ("1.35, any patch after 3", ())
    assert (minor.version, minor.refused) == ("1.36", ())


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("1.37.0", "skips a minor version; go to 1.36 before"),
        ("1.34.9", "is older than 1.35.3, and a control plane can't go back"),
        ("1.99.0", "knows kubeadm from 1.31 to 1.37"),
        ("soon", "is no version"),
    ],
)
def test_a_version_that_can_not_come_next_is_refused_with_its_reason(version: str, why: str) -> None:
    assert why in " ".join(judged(prod("1.35.3"), version).refused)


def test_kubelets_that_are_too_old_hold_the_control_plane() -> None:
    old = (MACHINE_DEPLOYMENT, workers("old", "1.32.4"))
    judgement = judged(prod("1.35.3", old), "1.36.0")
    assert judgement.refused == ("it bears kubelets from 1.33 on, and these have older ones: MachineDeployment/old",)


def test_a_control_plane_that_is_on_its_way_is_waited_for() -> None:
    cluster = prod("1.36.1", runs=["1.35.3", "1.36.1"])
    assert "skips a minor version" in " ".join(judged(cluster, "1.37.0").refused)
    plan = plan_of(cluster, "")
    assert plan.under_way == "ControlPlane/cp is on its way from 1.35.3 to 1.36.1"
    assert plan.commands == ("nodewright describe cluster prod -n default",)


def test_workers_wait_for_the_control_plane_and_it_goes_first() -> None:
    plan = plan_of(prod("1.35.3", (MACHINE_DEPLOYMENT, workers("w", "1.35.3"))), "1.36.1")
    assert [(move.part.title, bool(move.waits)) for move in plan.moves] == [
        ("ControlPlane/cp", False),
        ("MachineDeployment/w", True),
    ]
    (command,) = plan.commands
    assert shlex.split(command)[4:] == [
        "controlplanes.cluster.k8s.io/cp",
        "--type=merge",
        "-p",
        '{"spec":{"version":"1.36.1"}}',
    ]


def test_workers_that_are_behind_their_control_plane_may_follow() -> None:
    plan = plan_of(prod("1.36.1", (MACHINE_DEPLOYMENT, workers("w", "1.35.3"))), "")
    assert [(move.part.title, move.version, move.waits) for move in plan.moves] == [
        ("MachineDeployment/w", "1.36.1", "")
    ]
    assert "machinedeployments.cluster.k8s.io/w" in plan.commands[0]


def test_of_machines_that_run_the_control_plane_one_goes_after_the_other() -> None:
    world = {MACHINE: [machine("cp-1", "1.35.3", plane=True), machine("cp-2", "1.35.3", plane=True)]}
    plan = plan_of(cluster_of(PROD, world), "1.36.1")
    assert len(plan.moves) == 2
    assert len(plan.commands) == 1
    assert '"controlPlane":"1.36.1"' in plan.commands[0]


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({}, "replaced by new ones"),
        ({"inPlace": "Prefer"}, "where their provider can"),
        ({"inPlace": "Require"}, "stops"),
    ],
)
def test_each_set_says_whether_its_machines_are_changed_or_replaced(policy: dict[str, str], words: str) -> None:
    cluster = prod("1.35.3", (MACHINE_DEPLOYMENT, workers("w", "1.35.3", **policy)))
    assert words in cluster.workers[0].how


def test_machines_of_a_deployment_are_counted_with_it_and_not_beside_it() -> None:
    own = [
        (MACHINE_DEPLOYMENT, workers("w", "1.35.3")),
        (MACHINE_SET, obj("w-1", {"template": {}}, owner="w")),
        (MACHINE, machine("w-1-0", "1.34.1", owner="w-1")),
    ]
    (part,) = prod("1.35.3", *own).workers
    assert (part.title, part.runs) == ("MachineDeployment/w", ((1, 34, 1),))


def test_what_is_tried_on_paper_is_what_the_command_does() -> None:
    cluster = prod("1.35.3", (MACHINE_DEPLOYMENT, workers("w", "1.35.3")))
    edits = on_paper([(cluster.workers[0], "1.36.1")])
    assert edits[0]["spec"] == {"template": {"spec": {"versions": {"kubelet": "1.36.1"}}}}


def test_names_of_others_are_quoted_in_commands() -> None:
    odd = {**workers("w", "1.35.3")}
    odd["metadata"] = {**odd["metadata"], "name": "w;rm -rf /"}
    plan = plan_of(prod("1.36.1", (MACHINE_DEPLOYMENT, odd)), "")
    assert "machinedeployments.cluster.k8s.io/w;rm -rf /" in shlex.split(plan.commands[0])


def test_a_plan_fits_80_columns_and_has_a_form_for_programs() -> None:
    plan = plan_of(prod("1.35.3", (MACHINE_DEPLOYMENT, workers("w", "1.32.3"))), "1.36.1")
    assert max(len(str(line)) for line in sentences(plan_tree(plan), 80)) <= 80
    assert plan_data(plan)["asked"]["refused"] == list(plan.asked.refused if plan.asked else ())


def test_a_version_that_is_none_is_wrong_usage() -> None:
    assert run(["upgrade", "plan", "--kubernetes-version", "soon"]) == 2
    assert run(["upgrade", "plan", "prod", "-A"]) == 2


# -- Nodewright itself


def crd(*versions: str, storage: str, stored: tuple[str, ...] = (), group: str = names.GROUP) -> dict[str, Any]:
    listed = [{"name": each, "served": True, "storage": each == storage} for each in versions]
    name = f"things.{group}"
    spec = {"group": group, "versions": listed, "names": {"plural": "things", "kind": "Thing"}}
    return {"metadata": {"name": name}, "spec": spec, "status": {"storedVersions": list(stored or (storage,))}}


@pytest.mark.parametrize(
    ("live", "verdict"),
    [
        (None, Verdict.CREATED),
        (crd("v1beta1", storage="v1beta1"), Verdict.SAFE),
        (crd("v1alpha1", "v1beta1", storage="v1beta1"), Verdict.SAFE),
        (crd("v1alpha1", "v1beta1", storage="v1beta1", stored=("v1alpha1", "v1beta1")), Verdict.REWRITTEN_BEFORE),
        (crd("v1alpha1", "v1beta1", storage="v1alpha1"), Verdict.REWRITTEN_BEFORE),
        (crd("v1alpha1", storage="v1alpha1"), Verdict.REFUSED),
        (crd("v1beta1", "v1", storage="v1"), Verdict.REFUSED),
        (crd("v1beta1", "v1", storage="v1beta1"), Verdict.REFUSED),
    ],
)
def test_a_definition_is_judged_by_the_versions_that_objects_are_stored_in(live: Any, verdict: Verdict) -> None:
    assert definition_of(crd("v1beta1", storage="v1beta1"), live).verdict is verdict


def test_objects_of_an_older_version_that_stays_are_rewritten_in_the_end() -> None:
    live = crd("v1alpha1", "v1beta1", storage="v1beta1", stored=("v1alpha1", "v1beta1"))
    found = definition_of(crd("v1alpha1", "v1beta1", storage="v1beta1"), live)
    assert found.verdict is Verdict.REWRITTEN_AFTER


def test_a_definition_of_somebody_else_is_left_alone() -> None:
    ours, theirs = (crd("v1", storage=each, group="x.example") for each in ("v1", "v1"))
    assert definition_of(ours, theirs).verdict is Verdict.LEFT


@pytest.mark.parametrize(("theirs", "refused"), [("0.1.0", 0), ("", 0), ("0.0.9", 0), ("0.2.0", 1), ("odd", 0)])
def test_controllers_that_are_newer_forbid_to_go_back(theirs: str, refused: int) -> None:
    assert len(hindrances([], [Controllers("nodewright", theirs)], "0.1.0")) == refused


async def test_kinds_that_the_embedded_api_server_brought_are_no_others() -> None:
    """``up`` installs those of autoscaling.x-k8s.io itself; of another's hand they would be left alone."""
    async with APIServer(APIServerConfig(crds=tuple(load_crds()))) as plane:
        crds = plane.store.resources.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert crds is not None
        for shipped in load_crds():
            live = plane.store.get(crds, "", shipped["metadata"]["name"])
            assert definition_of(shipped, live).verdict is Verdict.SAFE
