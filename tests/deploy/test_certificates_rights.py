"""The component that approves certificates: the rights that the pages tell, and those that the process asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.program import Kubectl
from nodewright.runtime.settings import wiring
from nodewright.runtime.settings.rights import to_begin, to_work
from tests.deploy.rights import granted
from tests.docs.pages import ROOT, blocks

COMPONENT = ROOT / "deploy/components/certificates"
NAME = "nodewright-certificates"


def of_component() -> list[Any]:
    return list(yaml.safe_load_all((COMPONENT / "rbac.yaml").read_text()))


def of_page(name: str) -> list[Any]:
    texts = [block.text for block in blocks(ROOT / "docs/tasks" / name) if f"name: {NAME}\n" in block.text]
    return [doc for text in texts for doc in yaml.safe_load_all(text)]


def rights_of(docs: list[Any], kind: str) -> set[str]:
    return {str(each) for doc in docs if doc["kind"] == kind for each in granted(doc)}


def test_the_page_tells_what_the_component_has() -> None:
    assert of_page("certificates.md") == of_component()


def test_in_a_workload_cluster_the_same_is_needed_but_for_nodes() -> None:
    told, here = of_page("workload-clusters.md"), of_component()
    assert rights_of(told, "Role") == rights_of(here, "Role")
    extra = rights_of(here, "ClusterRole") - rights_of(told, "ClusterRole")
    assert all("nodes" in each or "get" in each for each in extra), "Nodes are read there anyway"
    assert rights_of(told, "ClusterRole") <= rights_of(here, "ClusterRole")


def test_the_process_asks_for_no_more_at_its_start() -> None:
    """But for Clusters, Machines and Leases, which other roles have."""
    approver = (wiring.on_request()["certificatesigningrequest"](),)
    asked = {*to_begin(approver, wiring.parts_of(approver), "nodewright-system"), *to_work(approver, "")}
    given = rights_of(of_component(), "ClusterRole") | rights_of(of_component(), "Role")
    rest = {r for r in asked if r.group not in {"cluster.k8s.io", "coordination.k8s.io"}}
    lacking = [r for r in rest if not any(r.resource.partition("/")[0] in each and r.verb in each for each in given)]
    assert lacking == []


@pytest.mark.kubectl
def test_the_component_renders_with_the_base(kubectl_binary: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    text = "resources: [../deploy/base]\ncomponents: [../deploy/components/certificates]\n"
    (folder / "kustomization.yaml").write_text(text)
    kubectl = Kubectl(kubectl_binary, Path("none"), tmp_path / "cache")
    rendered = kubectl("kustomize", str(folder), "--load-restrictor=LoadRestrictionsNone")
    docs = [doc for doc in yaml.safe_load_all(rendered) if doc]
    there = {(doc["kind"], doc["metadata"].get("namespace", ""), doc["metadata"]["name"]) for doc in docs}
    assert {("Role", "default", NAME), ("ClusterRole", "", NAME)} <= there
    (args,) = [d["spec"]["template"]["spec"]["containers"][0]["args"] for d in docs if d["kind"] == "Deployment"]
    assert "--controllers=*,certificatesigningrequest" in args
