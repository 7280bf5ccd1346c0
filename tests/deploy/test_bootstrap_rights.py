"""The rights of the component for bootstrap data are those that its calls need, each where the call goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from api import names
from controllers.bootstrap import reporting_access
from controllers.bootstrap.calls import Call, Drop, Get, Post
from controllers.kernel.refs import CONFIG_MAP, SECRET
from hack.program import Kubectl
from nodewright.runtime.bootstrap.targets import CLUSTER_INFO
from tests.controllers.bootstrap.conversations import Servers, every_conversation
from tests.deploy.rights import Right, granted, right
from tests.docs.pages import ROOT, blocks

COMPONENT = ROOT / "deploy" / "components" / "bootstrap"


def roles() -> dict[str, Any]:
    docs = yaml.safe_load_all((COMPONENT / "rbac.yaml").read_text())
    return {doc["metadata"]["name"]: doc for doc in docs if doc["kind"].endswith("Role")}


def calls() -> Iterator[Call]:
    servers = Servers()
    every_conversation(servers)
    return iter(servers.calls)


def verb(call: Call) -> str:
    return (
        "get"
        if isinstance(call, Get)
        else "create"
        if isinstance(call, Post)
        else "delete"
        if isinstance(call, Drop)
        else "patch"
    )


@pytest.mark.parametrize(
    ("place", "role", "more"),
    [("machines", "nodewright-bootstrap", set()), ("nodes", "nodewright-bootstrap-tokens", {right(SECRET, "list")})],
)
def test_a_role_grants_what_is_called_and_nothing_else(place: str, role: str, more: set[Right]) -> None:
    """list: the sweep for tokens that outlived their Machine."""
    needed = {right(SECRET, verb(call)) for call in calls() if call.place == place} | more
    assert set(granted(roles()[role])) == needed


def test_tokens_and_cluster_info_are_allowed_in_their_namespaces_only() -> None:
    found = roles()
    assert found["nodewright-bootstrap-tokens"]["metadata"]["namespace"] == names.TOKEN_NAMESPACE
    info = found["nodewright-cluster-info"]
    assert info["metadata"]["namespace"] == CLUSTER_INFO.namespace
    assert info["rules"][0]["resourceNames"] == [CLUSTER_INFO.name]
    assert granted(info) == [right(CONFIG_MAP, "get")]


def test_the_user_in_a_workload_cluster_is_told_the_same_rights_for_tokens() -> None:
    page = ROOT / "docs/tasks/workload-clusters.md"
    told = [
        doc
        for block in blocks(page)
        if "nodewright-bootstrap-tokens" in block.text
        for doc in yaml.safe_load_all(block.text)
    ]
    roles_told = {doc["metadata"]["name"]: doc for doc in told if doc["kind"] == "Role"}
    for name in ("nodewright-bootstrap-tokens", "nodewright-cluster-info"):
        assert set(granted(roles_told[name])) == set(granted(roles()[name]))
        assert roles_told[name]["metadata"]["namespace"] == roles()[name]["metadata"]["namespace"]


def test_a_workload_cluster_is_told_what_reports_of_hosts_need() -> None:
    """Without it no host there could say why it fails."""
    page = ROOT / "docs/tasks/workload-clusters.md"
    texts = [block.text for block in blocks(page) if "nodewright-bootstrap-report" in block.text]
    told = {(doc["kind"], doc["metadata"]["name"]): doc for text in texts for doc in yaml.safe_load_all(text)}
    for kind, body in reporting_access.objects():
        doc = told[kind.name, body["metadata"]["name"]]
        assert doc == body, f"{kind.name} {body['metadata']['name']}"
    assert set(granted(told["Role", "nodewright-bootstrap-reports"])) == set(
        granted(roles()["nodewright-bootstrap-reports"])
    )


@pytest.mark.parametrize("role", ["nodewright-bootstrap", "nodewright-bootstrap-tokens", "nodewright-cluster-info"])
def test_every_role_is_documented(role: str) -> None:
    assert f"`{role}`" in (ROOT / "docs/tasks/run-on-kubernetes.md").read_text()


@pytest.mark.kubectl
def test_the_component_renders_with_the_base_and_keeps_its_namespaces(kubectl_binary: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    text = "resources: [../deploy/base]\ncomponents: [../deploy/components/bootstrap]\n"
    (folder / "kustomization.yaml").write_text(text)
    kubectl = Kubectl(kubectl_binary, Path("none"), tmp_path / "cache")
    docs = [
        doc
        for doc in yaml.safe_load_all(kubectl("kustomize", str(folder), "--load-restrictor=LoadRestrictionsNone"))
        if doc
    ]
    there = {(doc["kind"], doc["metadata"].get("namespace", ""), doc["metadata"]["name"]) for doc in docs}
    assert ("Role", "kube-system", "nodewright-bootstrap-tokens") in there
    assert ("Role", "kube-public", "nodewright-cluster-info") in there
    assert ("ClusterRole", "", "nodewright-bootstrap") in there
