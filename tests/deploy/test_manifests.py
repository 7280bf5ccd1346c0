"""What lies in deploy/ renders, is accepted by an API server, and says what an administrator looks for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from api import names
from hack.program import Kubectl, Up
from nodewright import __version__
from nodewright.cli.election import reconcilers_named
from nodewright.cli.main import build_app
from nodewright.crds import load_crds
from tests.deploy.rights import asks_where_nodes_live
from tests.docs.pages import ROOT

pytestmark = pytest.mark.kubectl

BASES = ("base", "split")
NOT_EMBEDDED = {"NetworkPolicy", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
"""Kinds that the embedded control plane does not serve; the real server is asked in ``test_on_a_real_server``."""
TRY_OUT = """
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [base]
components: [components/simulated-kubelets]
"""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("up"), kubectl_binary, "--in-memory", "--no-controllers") as running:
        yield running


@pytest.fixture(scope="module")
def kustomize(kubectl_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    folder = tmp_path_factory.mktemp("kubectl")
    return Kubectl(kubectl_binary, folder / "none", folder / "cache")


Docs = list[dict[str, Any]]


@pytest.fixture(scope="module", params=BASES)
def docs(request: pytest.FixtureRequest, kustomize: Kubectl) -> Docs:
    """One base, rendered."""
    return [doc for doc in yaml.safe_load_all(kustomize("kustomize", str(ROOT / "deploy" / request.param))) if doc]


def of_kind(docs: Docs, kind: str) -> Docs:
    return [doc for doc in docs if doc["kind"] == kind]


def test_every_object_is_accepted(docs: Docs, plane: Up) -> None:
    served = [doc for doc in docs if doc["kind"] not in NOT_EMBEDDED]
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": served})
    named = plane.kubectl("apply", "--server-side", "--force-conflicts", "-o", "name", "-f", "-", stdin=items)
    assert len(named.split()) == len(served)


def test_it_brings_the_crds_of_this_version(docs: Docs) -> None:
    """Those of our group: others may have been installed by somebody else."""

    def specs(docs: Docs) -> dict[str, Any]:
        return {doc["metadata"]["name"]: doc["spec"] for doc in docs}

    ours = [crd for crd in load_crds() if crd["spec"]["group"] == names.GROUP]
    assert specs(of_kind(docs, "CustomResourceDefinition")) == specs(ours)


def test_a_deployment_is_available_guarded_and_not_privileged(docs: Docs) -> None:
    deployments = of_kind(docs, "Deployment")
    assert deployments
    for deployment in deployments:
        pod = deployment["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert deployment["spec"]["replicas"] == 2
        assert container["image"] == f"nodewright:{__version__}"
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
        assert {"cpu", "memory"} == set(container["resources"]["requests"])
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        for guard, where in (("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector")):
            selectors = [doc["spec"][where]["matchLabels"] for doc in of_kind(docs, guard)]
            assert sum(selector.items() <= labels.items() for selector in selectors) == 1, guard


def test_probes_and_policies_name_ports_that_the_program_listens_on(docs: Docs) -> None:
    for deployment in of_kind(docs, "Deployment"):
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        said = dict(argument.split("=", 1) for argument in container["args"] if "=" in argument)
        assert ports == {"health": int(said["--health-port"]), "metrics": int(said["--metrics-port"])}
        named = {container[probe]["httpGet"]["port"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
        assert named <= set(ports)
    for policy in of_kind(docs, "NetworkPolicy"):
        assert {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]} <= set(ports)


def test_the_arguments_exist(docs: Docs) -> None:
    known = _options_of_run()
    for deployment in of_kind(docs, "Deployment"):
        command, *arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        assert command == "run"
        assert {argument.split("=")[0] for argument in arguments} <= known


def test_every_controller_runs_once_under_an_account_with_its_role(docs: Docs) -> None:
    running = []
    for deployment in of_kind(docs, "Deployment"):
        pod = deployment["spec"]["template"]["spec"]
        account = pod["serviceAccountName"]
        assert account in {doc["metadata"]["name"] for doc in of_kind(docs, "ServiceAccount")}
        arguments = [a for a in pod["containers"][0]["args"] if a.startswith("--controllers=")]
        reconcilers = reconcilers_named(arguments[0].partition("=")[2] if arguments else "*")
        wanted = {f"nodewright-{reconciler.name}" for reconciler in reconcilers}
        if any(asks_where_nodes_live(reconciler) for reconciler in reconcilers):
            wanted.add("nodewright-kubeconfigs")
        assert _roles_of(docs, account, "ClusterRoleBinding") == wanted
        assert _roles_of(docs, account, "RoleBinding") == {"nodewright-leader-election"}
        running += [reconciler.name for reconciler in reconcilers]
    assert sorted(running) == sorted(reconciler.name for reconciler in reconcilers_named("*"))


def test_an_api_server_warns_of_misspelt_fields_by_default(docs: Docs) -> None:
    policies = yaml.safe_load_all((ROOT / "deploy/components/unknown-fields/policies.yaml").read_text())
    brought = [doc for doc in docs if doc["kind"].startswith("ValidatingAdmissionPolicy")]
    assert sorted((doc["kind"], doc["metadata"]["name"]) for doc in brought) == sorted(
        (doc["kind"], doc["metadata"]["name"]) for doc in policies
    )
    assert [doc["metadata"]["name"] for doc in brought if "namespace" in doc["metadata"]] == []


def test_the_component_for_trying_out_turns_kubelets_on_in_one_replica(kustomize: Kubectl, tmp_path: Path) -> None:
    for name in ("base", "crds", "rbac", "namespace", "controllers", "components"):
        (tmp_path / name).symlink_to(ROOT / "deploy" / name)
    (tmp_path / "kustomization.yaml").write_text(TRY_OUT)
    docs = [doc for doc in yaml.safe_load_all(kustomize("kustomize", str(tmp_path))) if doc]
    (deployment,) = of_kind(docs, "Deployment")
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert deployment["spec"]["replicas"] == 1
    assert "--simulated-kubelets" in arguments
    assert "--no-simulated-kubelets" not in arguments
    assert "nodewright-simulated-kubelets" in _roles_of(docs, "nodewright", "ClusterRoleBinding")


def _roles_of(docs: Docs, account: str, kind: str) -> set[str]:
    return {
        doc["roleRef"]["name"]
        for doc in of_kind(docs, kind)
        for subject in doc["subjects"]
        if (subject["name"], subject["namespace"]) == (account, "nodewright-system")
    }


def _options_of_run() -> set[str]:
    command = typer.main.get_command(build_app(["run"])).commands["run"]  # type: ignore[attr-defined]
    return {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
