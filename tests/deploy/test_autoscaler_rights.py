"""The autoscaler's rights are what its plans ask for, and nothing else; its folder renders."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from api import names
from controllers.autoscaler.options import AutoscalerOptions, ShrinkOptions
from controllers.autoscaler.reconciler import AutoscalerReconciler
from controllers.kernel.actions import Patch
from controllers.kernel.refs import CONFIG_MAP, EVENT, LEASE, WORKLOAD_KINDS, Key
from controllers.kernel.view import MANAGEMENT_CLUSTER, Reached
from nodewright.cli.election import reconcilers_named
from tests.controllers.autoscaler.fleet import Fleet
from tests.controllers.autoscaler.town import config_map, view_of
from tests.deploy.rights import Watched, asks_where_nodes_live, granted, needed_by, right
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "tasks" / "workload-clusters.md"
RIGHTS = ROOT / "deploy" / "autoscaler" / "rights.yaml"
QUICK = AutoscalerOptions(shrink=ShrinkOptions(unneeded_time=timedelta(0), delay_after_add=timedelta(0)))


def of_kind(kind: str) -> Any:
    (found,) = [doc for doc in yaml.safe_load_all(RIGHTS.read_text()) if doc["kind"] == kind]
    return found


def lived(options: AutoscalerOptions = QUICK) -> Watched:
    """A group and a stand-alone set grow, are told a fault, and shrink; the ConfigMaps are made, then changed."""
    reconciler = Watched(AutoscalerReconciler(options))
    fleet = Fleet(options)
    for name in ("web", "alone"):
        fleet.group(name, 0, 5)["spec"]["clusterName"] = options.cluster.name if options.cluster is not None else ""
    fleet.sets["alone"] = {**fleet.deployments.pop("alone"), "status": {}}

    def decide(*known: dict[str, Any]) -> None:
        view = view_of(fleet, *((CONFIG_MAP, each) for each in known))
        view.living_in(MANAGEMENT_CLUSTER if options.cluster is None else Reached("prod-kubeconfig"))
        reconciler.plan(reconciler.observe(reconciler.reconciler.key, view, None))  # type: ignore[attr-defined]

    for number in range(8):
        fleet.pod(f"p-{number}", cpu="4")
    decide()
    fleet.sets["alone"]["metadata"]["annotations"][names.AUTOSCALER_MIN_ANNOTATION] = "few"
    fleet.deployments["web"]["metadata"]["annotations"][f"{names.CAPACITY_PREFIX}cpu"] = "much"
    decide(*(config_map(key.name) for key in (options.memory_key, options.status_key)))
    fleet.pods.clear()
    fleet.sets["alone"]["metadata"]["annotations"][names.AUTOSCALER_MIN_ANNOTATION] = "0"
    fleet.deployments["web"]["metadata"]["annotations"][f"{names.CAPACITY_PREFIX}cpu"] = "4"
    fleet.deployments["web"]["spec"]["replicas"] = 1
    fleet.sets["alone"]["spec"]["replicas"] = 1
    fleet.join(fleet.machine("web"))
    decide()
    return reconciler


@pytest.fixture(scope="module")
def reconciler() -> Watched:
    return lived()


def test_it_may_do_what_it_needs_and_nothing_else(reconciler: Watched) -> None:
    needed = needed_by(reconciler)
    given = [*granted(of_kind("ClusterRole")), *granted(of_kind("Role"))]
    kubeconfigs = granted(yaml.safe_load((ROOT / "deploy" / "rbac" / "kubeconfigs.yaml").read_text()))
    assert asks_where_nodes_live(reconciler.reconciler)
    assert sorted(map(str, needed - {*given, *kubeconfigs})) == [], "it lacks rights"
    assert sorted(map(str, {*given, *kubeconfigs} - needed)) == [], "it has needless rights"
    assert {str(twice) for twice, times in Counter(given).items() if times > 1} <= {
        "list configmaps",
        "watch configmaps",
    }


def test_it_names_every_config_map_and_lease_that_it_reads_or_changes(reconciler: Watched) -> None:
    rules = of_kind("Role")["rules"]
    for kind, keys in reconciler.reconciler.parts.items():  # type: ignore[attr-defined]
        named = {
            name
            for rule in rules
            if kind.plural in rule["resources"] and {"list", "watch"} <= set(rule["verbs"])
            for name in rule["resourceNames"]
        }
        assert named == {key.name for key in keys}
    changed = {action.target.key.name for action in reconciler.actions if isinstance(action, Patch)
               and action.target.kind == CONFIG_MAP}  # fmt: skip
    (patching,) = [rule for rule in rules if "patch" in rule["verbs"]]
    assert changed == set(patching["resourceNames"])
    assert all(rule["verbs"] == ["create"] for rule in rules if not rule.get("resourceNames"))


def test_what_it_reads_in_one_namespace_it_may_read_there_only(reconciler: Watched) -> None:
    parts = {kind.plural for kind in reconciler.reconciler.parts}  # type: ignore[attr-defined]
    assert parts == {CONFIG_MAP.plural, LEASE.plural}
    assert of_kind("Role")["metadata"]["namespace"] == AutoscalerOptions().namespace
    assert parts == {each.resource for each in granted(of_kind("Role"))}
    assert not parts & {each.resource for each in granted(of_kind("ClusterRole"))}


def test_for_one_cluster_it_needs_no_other_rights_at_home_and_there_what_the_page_tells() -> None:
    """Events lie where what they are about lives: in both."""
    needed = needed_by(lived(replace(QUICK, cluster=Key("ns", "prod"))))
    events = {right(EVENT, verb) for verb in ("create", "patch")}
    kinds = {kind.plural for kind in WORKLOAD_KINDS}
    there = {each for each in needed if each.resource in kinds}
    told = [
        doc for block in blocks(PAGE) if "name: nodewright-autoscaler\n" in block.text
        for doc in yaml.safe_load_all(block.text)
    ]  # fmt: skip
    assert sorted(set().union(*map(granted, told))) == sorted(there | events)
    (role,) = (doc for doc in told if doc["kind"] == "Role")
    (rule,) = role["rules"]
    assert (rule["resources"], rule["resourceNames"]) == ([LEASE.plural], [names.AUTOSCALER_LEASE])
    assert role["metadata"]["namespace"] == AutoscalerOptions().namespace
    kubeconfigs = granted(yaml.safe_load((ROOT / "deploy" / "rbac" / "kubeconfigs.yaml").read_text()))
    assert needed - there <= {*granted(of_kind("ClusterRole")), *granted(of_kind("Role")), *kubeconfigs}


@pytest.mark.kubectl
def test_the_page_s_folder_for_one_cluster_stands_beside_the_others(kubectl_binary: Path, tmp_path: Path) -> None:
    """Selectors of its own, too: two PodDisruptionBudgets for one pod would let nobody evict it."""
    from hack.program import Kubectl  # noqa: PLC0415

    (block,) = (block for block in blocks(PAGE) if block.file == "kustomization.yaml")
    here = tmp_path.resolve()
    above = os.path.relpath(ROOT, here)
    (here / block.file).write_text(block.text.replace("../deploy/autoscaler", f"{above}/deploy/autoscaler"))
    kubectl = Kubectl(kubectl_binary, Path("none"), Path("none"))
    both = [
        {
            (doc["kind"], doc["metadata"].get("namespace"), doc["metadata"]["name"]): doc
            for doc in yaml.safe_load_all(text)
        }
        for text in (kubectl("kustomize", str(here)), kubectl("kustomize", str(RIGHTS.parent)))
    ]
    assert not both[0].keys() & both[1].keys()
    (one,), (other,) = ([doc for doc in docs.values() if doc["kind"] == "Deployment"] for docs in both)
    assert one["spec"]["selector"] != other["spec"]["selector"]
    assert {"--controllers=autoscaler", "--cluster=default/prod"} <= {
        *one["spec"]["template"]["spec"]["containers"][0]["args"]
    }
    ours = AutoscalerOptions(cluster=Key("default", "prod"))
    (rule,) = (
        rule for doc in both[0].values() if doc["kind"] == "Role" for rule in doc["rules"]
        if rule["resources"] == [CONFIG_MAP.plural] and "patch" in rule["verbs"]
    )  # fmt: skip
    assert set(rule["resourceNames"]) == {ours.memory_key.name, ours.status_key.name}
    account = one["spec"]["template"]["spec"]["serviceAccountName"]
    bindings = [doc for doc in both[0].values() if doc["kind"].endswith("Binding")]
    assert {subject["name"] for doc in bindings for subject in doc["subjects"]} == {account}
    for doc in both[0].values():
        if doc["kind"] in ("PodDisruptionBudget", "NetworkPolicy"):
            selector = doc["spec"].get("selector") or doc["spec"]["podSelector"]
            assert selector["matchLabels"]["app.kubernetes.io/instance"] == "prod", doc["kind"]


@pytest.mark.kubectl
def test_its_folder_renders_one_deployment_under_an_account_with_these_roles(kubectl_binary: Path) -> None:
    from hack.program import Kubectl  # noqa: PLC0415

    rendered = Kubectl(kubectl_binary, Path("none"), Path("none"))("kustomize", str(RIGHTS.parent))
    docs = [doc for doc in yaml.safe_load_all(rendered) if doc]
    (deployment,) = [doc for doc in docs if doc["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    (argument,) = [each for each in pod["containers"][0]["args"] if each.startswith("--controllers=")]
    assert [each.name for each in reconcilers_named(argument.partition("=")[2])] == ["autoscaler"]
    account = {"name": pod["serviceAccountName"], "namespace": deployment["metadata"]["namespace"]}
    bound = {
        doc["roleRef"]["name"]
        for doc in docs
        if doc["kind"].endswith("Binding")
        and account in [{key: each[key] for key in account} for each in doc["subjects"]]
    }
    assert bound == {"nodewright-autoscaler", "nodewright-kubeconfigs", "nodewright-leader-election"}
