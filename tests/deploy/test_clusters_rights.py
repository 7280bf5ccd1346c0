"""One process for all Clusters: its rights at home are what its plans ask for, and the page has those elsewhere."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from controllers.autoscaler.memory import Memory, write
from controllers.autoscaler.options import of_cluster
from controllers.autoscaler.reconciler import AutoscalerReconciler
from controllers.kernel.refs import CLUSTER, CONFIG_MAP, WORKLOAD_KINDS
from nodewright.cli.autoscaled import clusters_of
from nodewright.cli.autoscaling import Flags
from nodewright.runtime.settings.cluster_wiring import for_each_cluster
from tests.controllers.autoscaler.test_each_cluster import MINE, OPTIONS, Country
from tests.controllers.autoscaler.town import config_map
from tests.deploy.rights import Watched, granted, needed_by
from tests.docs.pages import ROOT, blocks

FOLDER = ROOT / "deploy" / "autoscaler-clusters"
PAGE = ROOT / "docs" / "tasks" / "workload-clusters.md"
REQUESTS = ROOT / "deploy" / "provisioningrequests" / "rights.yaml"


def roles(path: Path) -> list[Any]:
    return [doc for doc in yaml.safe_load_all(path.read_text()) if doc["kind"] in ("ClusterRole", "Role")]


def lived() -> Watched:
    """Groups of a Cluster grow, have a fault and shrink; then the Cluster goes."""
    (reconciler,) = for_each_cluster((AutoscalerReconciler(OPTIONS),))
    watched, own = Watched(reconciler), of_cluster(OPTIONS, MINE)
    for seed in range(12):
        country = Country(Random(seed))
        fleet = country.fleets[MINE]
        unneeded = Memory({name: fleet.now - timedelta(hours=1) for name in fleet.nodes})
        memory = config_map(own.memory_key.name, memory=write(unneeded))
        alone = next(iter(fleet.sets))
        if seed % 2:
            fleet.sets = {name: {**body, "status": {}} for name, body in fleet.deployments.items()}
            fleet.deployments = {}
            for number in range(9):
                fleet.pod(f"waits-{number}", cpu="4")
        if seed > 8:
            body = fleet.sets.get(alone, {}) if seed % 2 else fleet.deployments[alone]
            body["metadata"]["annotations"]["cluster.k8s.io/cluster-api-autoscaler-node-group-min-size"] = "few"
        known = (memory, config_map(own.status_key.name)) if seed > 1 else ()
        view = country.view(MINE, None, *known)
        watched.plan(watched.observe(MINE, view, None))
    watched.plan(watched.observe(MINE, view.drop(CLUSTER, "mine", "ns"), None))
    return watched


def test_at_home_it_may_do_what_it_needs_and_nothing_else() -> None:
    there = {kind.plural for kind in WORKLOAD_KINDS}
    needed = {each for each in needed_by(lived()) if each.resource not in there}
    own = {each for role in roles(FOLDER / "rights.yaml") for each in granted(role)}
    kubeconfigs = granted(yaml.safe_load((ROOT / "deploy" / "rbac" / "kubeconfigs.yaml").read_text()))
    assert sorted(map(str, needed - {*own, *kubeconfigs})) == [], "it lacks rights"
    assert sorted(map(str, {*own, *kubeconfigs} - needed)) == [], "it has needless rights"


def test_it_may_touch_config_maps_in_a_namespace_of_its_own_alone() -> None:
    docs = list(yaml.safe_load_all((FOLDER / "rights.yaml").read_text()))
    (role,) = (doc for doc in docs if doc["kind"] == "Role")
    assert {resource for rule in role["rules"] for resource in rule["resources"]} == {CONFIG_MAP.plural}
    assert role["metadata"]["namespace"] in {doc["metadata"]["name"] for doc in docs if doc["kind"] == "Namespace"}
    (whole,) = (doc for doc in docs if doc["kind"] == "ClusterRole")
    assert CONFIG_MAP.plural not in {resource for rule in whole["rules"] for resource in rule["resources"]}


def test_the_page_has_the_rights_for_requests_in_a_workload_cluster() -> None:
    """The same as in the management cluster, but for the ConfigMap with the classes, which stays there."""
    told = [
        doc for block in blocks(PAGE) if "name: nodewright-provisioningrequest\n" in block.text
        for doc in yaml.safe_load_all(block.text)
    ]  # fmt: skip
    (here,) = (doc for doc in roles(REQUESTS) if doc["kind"] == "ClusterRole")
    assert sorted(set().union(*map(granted, told))) == sorted(granted(here))


@pytest.mark.kubectl
def test_its_folder_renders_beside_the_other_one(kubectl_binary: Path) -> None:
    from hack.program import Kubectl  # noqa: PLC0415

    kubectl = Kubectl(kubectl_binary, Path("none"), Path("none"))
    rendered = (kubectl("kustomize", str(folder)) for folder in (FOLDER, ROOT / "deploy" / "autoscaler"))
    both = [{_name_of(doc): doc for doc in yaml.safe_load_all(text)} for text in rendered]
    assert not both[0].keys() & both[1].keys()
    (one,), (other,) = ([doc for doc in docs.values() if doc["kind"] == "Deployment"] for docs in both)
    assert one["spec"]["selector"] != other["spec"]["selector"]
    pod = one["spec"]["template"]["spec"]
    bindings = [doc for doc in both[0].values() if doc["kind"].endswith("Binding")]
    assert {subject["name"] for doc in bindings for subject in doc["subjects"]} == {pod["serviceAccountName"]}
    given = dict(arg.removeprefix("--").partition("=")[::2] for arg in pod["containers"][0]["args"])
    assert given["controllers"] == "autoscaler"
    choice = clusters_of(replace(Flags(), clusters=given["clusters"], management_cluster=False))
    assert choice == OPTIONS.clusters
    (role,) = (doc for doc in both[0].values() if doc["kind"] == "Role")
    assert given["autoscaler-namespace"] == role["metadata"]["namespace"]


def _name_of(doc: Any) -> tuple[str, str | None, str]:
    return doc["kind"], doc["metadata"].get("namespace"), doc["metadata"]["name"]
