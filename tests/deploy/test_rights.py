"""Each controller has a role that grants what its plans ask for, and nothing else. No cluster is needed to find out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import yaml

from controllers.kernel.refs import CONFIG_MAP, LEASE, NAMESPACE, POD, SECRET, WORKLOAD_KINDS
from nodewright.runtime.settings.wiring import reconcilers
from tests.deploy.rights import Watched, asks_where_nodes_live, granted, lived, needed_by, right
from tests.docs.pages import ROOT, blocks

RBAC = ROOT / "deploy" / "rbac"
CLUSTERS_NAMESPACE = "nodewright-autoscaler"
"""Of deploy/autoscaler-clusters: it has the ConfigMaps of many Clusters, whose names nobody knows before."""
WORKLOAD_PAGE = ROOT / "docs" / "tasks" / "workload-clusters.md"
NAMES = [reconciler.name for reconciler in reconcilers()]


@pytest.fixture(scope="module")
def watched() -> dict[str, Watched]:
    return {reconciler.name: reconciler for reconciler in lived(reconcilers())}


def role(name: str) -> Any:
    path = RBAC / f"{name}.yaml"
    assert path.is_file(), f"the controller {name} has no role: write {path.relative_to(ROOT)}"
    return yaml.safe_load(path.read_text())


@pytest.mark.parametrize("name", NAMES)
def test_a_controller_may_do_what_it_needs_and_nothing_else(name: str, watched: dict[str, Watched]) -> None:
    needed, given = needed_by(watched[name]), granted(role(name))
    if asks_where_nodes_live(watched[name].reconciler):
        given += granted(role("kubeconfigs"))
    assert sorted(map(str, needed - set(given))) == [], f"the role of {name} lacks rights"
    assert sorted(map(str, set(given) - needed)) == [], f"the role of {name} has needless rights"
    assert [str(twice) for twice, times in Counter(given).items() if times > 1] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_role_is_named_after_its_controller_and_is_used(name: str) -> None:
    assert role(name)["kind"] == "ClusterRole"
    assert role(name)["metadata"]["name"] == f"nodewright-{name}"
    assert f"{name}.yaml" in yaml.safe_load((RBAC / "kustomization.yaml").read_text())["resources"]


def test_leader_election_is_allowed_in_one_namespace_only() -> None:
    election = role("leader-election")
    assert election["kind"] == "Role"
    assert set(granted(election)) == {right(LEASE, verb) for verb in ("get", "list", "create", "patch")}


def test_no_role_is_left_of_a_controller_that_is_gone() -> None:
    assert {path.stem for path in RBAC.glob("*.yaml")} == {*NAMES, "kubeconfigs", "leader-election", "kustomization"}


def test_secrets_are_read_by_one_role_that_can_be_bound_apart(watched: dict[str, Watched]) -> None:
    assert granted(role("kubeconfigs")) == [right(SECRET, "get")], "nobody learns by it which Secrets there are"
    assert not [name for name in NAMES if any(each.resource == SECRET.plural for each in granted(role(name)))]


def test_a_room_that_does_more_is_found_out(watched: dict[str, Watched]) -> None:
    """The comparison can fail: with all actions of the Machine controller another role lacks rights."""
    machine, sets = watched["machine"], watched["machineset"]
    more = replace(sets, actions=[*sets.actions, *machine.actions])
    assert right(POD, "create", "eviction") in needed_by(more) - set(granted(role("machineset")))
    fewer = replace(machine, actions=[])
    assert set(granted(role("machine"))) - needed_by(fewer)


@pytest.mark.parametrize("name", [*NAMES, "kubeconfigs", "leader-election"])
def test_every_role_is_documented(name: str) -> None:
    assert f"`nodewright-{name}`" in (ROOT / "docs/tasks/run-on-kubernetes.md").read_text()


def test_the_user_in_a_workload_cluster_is_told_the_same_rights_there() -> None:
    """What the page tells is the Machine controller's role, as far as it goes for what lives in that cluster."""
    there = {kind.plural for kind in WORKLOAD_KINDS}
    rights = {each for each in granted(role("machine")) if each.resource.partition("/")[0] in there}
    rights -= {right(NAMESPACE, "get")}  # of kube-system where the Machines are
    told = [yaml.safe_load(block.text) for block in blocks(WORKLOAD_PAGE) if "  name: nodewright\n" in block.text]
    assert [set(granted(each)) for each in told] == [rights]


def test_no_role_that_is_shipped_lists_secrets_or_writes_what_it_does_not_name() -> None:
    """Of every file, components included: Secrets by name only, and ConfigMaps of others are never written: only by
    name, or in a namespace that has nothing else.

    But for the component that makes bootstrap tokens, which nobody has who does not ask for it.
    """
    files = set((ROOT / "deploy").rglob("*.yaml")) - {ROOT / "deploy/components/bootstrap/rbac.yaml"}
    for path in sorted(files):
        for doc in yaml.safe_load_all(path.read_text()):
            for rule in (doc or {}).get("rules") or () if isinstance(doc, dict) else ():
                resources, verbs = set(rule.get("resources") or ()), set(rule.get("verbs") or ())
                assert "*" not in resources | verbs, path
                if SECRET.plural in resources:
                    assert verbs == {"get"}, path
                if CONFIG_MAP.plural in resources and verbs - {"create"}:
                    alone = doc["kind"] == "Role" and doc["metadata"].get("namespace") == CLUSTERS_NAMESPACE
                    assert alone or rule.get("resourceNames"), path
