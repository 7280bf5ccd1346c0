"""Controllers for one namespace: their account has the rights of all controllers there, and elsewhere Nodes' only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from controllers.kernel.refs import SECRET, WORKLOAD_KINDS
from hack.program import Kubectl
from nodewright.runtime.settings.wiring import reconcilers
from tests.deploy.rights import Right, granted, right
from tests.docs.pages import ROOT

FOLDER = ROOT / "deploy" / "namespaced"
RBAC = ROOT / "deploy" / "rbac"


def of_kind(kind: str) -> Any:
    (found,) = [doc for doc in yaml.safe_load_all((FOLDER / "rights.yaml").read_text()) if doc["kind"] == kind]
    return found


def all_rights() -> set[Right]:
    files = [RBAC / f"{reconciler.name}.yaml" for reconciler in reconcilers()]
    return {each for file in files for each in granted(yaml.safe_load(file.read_text()))}


def test_it_has_the_rights_of_all_controllers_divided_by_where_objects_are() -> None:
    everywhere = {(kind.group, kind.plural) for kind in WORKLOAD_KINDS}
    wide = {each for each in all_rights() if (each.group, each.resource.partition("/")[0]) in everywhere}
    assert set(granted(of_kind("ClusterRole"))) == wide
    assert set(granted(of_kind("Role"))) == (all_rights() - wide) | {right(SECRET, "get")}
    assert of_kind("Role")["metadata"]["namespace"] == "team-a"


@pytest.mark.kubectl
def test_its_folder_renders_one_deployment_for_that_namespace_beside_the_others(kubectl_binary: Path) -> None:
    kubectl = Kubectl(kubectl_binary, Path("none"), Path("none"))
    docs = [doc for doc in yaml.safe_load_all(kubectl("kustomize", str(FOLDER))) if doc]
    base = [doc for doc in yaml.safe_load_all(kubectl("kustomize", str(ROOT / "deploy" / "base"))) if doc]
    names = [
        {(doc["kind"], doc["metadata"].get("namespace"), doc["metadata"]["name"]) for doc in each if
         doc["kind"] != "Namespace"} for each in (docs, base)
    ]  # fmt: skip
    assert not names[0] & names[1]
    (deployment,) = [doc for doc in docs if doc["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    assert "--namespace=team-a" in pod["containers"][0]["args"]
    account = {"name": pod["serviceAccountName"], "namespace": deployment["metadata"]["namespace"]}
    bound = {
        (doc["roleRef"]["name"], doc["metadata"].get("namespace", ""))
        for doc in docs
        if doc["kind"].endswith("Binding")
        and account in [{key: each[key] for key in account} for each in doc["subjects"]]
    }
    assert bound == {
        ("nodewright", "team-a"),
        ("nodewright-nodes-team-a", ""),
        ("nodewright-leader-election-team-a", "nodewright-system"),
    }
