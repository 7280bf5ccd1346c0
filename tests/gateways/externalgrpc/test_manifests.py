"""deploy/components/externalgrpc fits the program: its rights, its options, its ports; and kustomize builds it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from controllers.kernel.refs import EVENT, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from nodewright.gateways.externalgrpc.fleet import KINDS
from tests.cli.test_docs import options_of
from tests.deploy.rights import granted, right
from tests.docs.pages import ROOT

DEPLOY = ROOT / "deploy"
COMPONENT = DEPLOY / "components" / "externalgrpc"


def load(name: str, kind: str = "") -> Any:
    found = list(yaml.safe_load_all((COMPONENT / f"{name}.yaml").read_text()))
    return next(each for each in found if each["kind"] == kind) if kind else found[0]


def pod() -> Any:
    return load("deployment")["spec"]["template"]["spec"]


def container() -> Any:
    (found,) = pod()["containers"]
    return found


def test_it_may_do_what_it_does_and_nothing_else() -> None:
    """List and watch what it keeps; read sizes and Machines again, write the size, mark; and tell in Events."""
    needed = {right(kind, verb) for kind in KINDS for verb in ("list", "watch")}
    needed |= {right(kind, verb) for kind in (MACHINE_DEPLOYMENT, MACHINE_SET) for verb in ("get", "patch")}
    needed |= {right(MACHINE, "get"), right(MACHINE, "patch"), right(EVENT, "create"), right(EVENT, "patch")}
    given = granted(load("rbac", "ClusterRole"))
    assert set(given) == needed
    assert len(given) == len(needed), "no right is granted twice"


def test_the_container_runs_a_command_that_exists_with_options_that_exist() -> None:
    command, kind, *options = container()["args"]
    assert (command, kind) == ("gateway", "externalgrpc")
    assert {option.partition("=")[0] for option in options} <= options_of(command)
    assert not any(option.startswith("--insecure") for option in options)


def test_the_service_and_the_probes_lead_to_the_ports() -> None:
    ports = {found["name"]: found["containerPort"] for found in container()["ports"]}
    assert f"--port={ports['grpc']}" in container()["args"]
    assert f"--metrics-port={ports['metrics']}" in container()["args"]
    (port,) = load("service")["spec"]["ports"]
    assert port["targetPort"] == "grpc"
    assert container()["readinessProbe"]["httpGet"]["port"] == "metrics"
    assert (
        load("service")["spec"]["selector"].items()
        <= load("deployment")["spec"]["template"]["metadata"]["labels"].items()
    )


def test_it_runs_without_privileges() -> None:
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert container()["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container()["securityContext"]["readOnlyRootFilesystem"] is True


def test_the_role_is_documented() -> None:
    assert "`nodewright-externalgrpc`" in (ROOT / "docs/tasks/run-on-kubernetes.md").read_text()


@pytest.mark.kubectl
def test_kustomize_builds_it(tmp_path: Path, kubectl_binary: Path) -> None:
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    overlay = tmp_path / "deploy" / "overlay"
    overlay.mkdir()
    desired = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    (overlay / "kustomization.yaml").write_text(
        yaml.safe_dump({**desired, "components": ["../components/externalgrpc"]})
    )
    command = [kubectl_binary, "kustomize", overlay]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    kinds = {obj["kind"] for obj in yaml.safe_load_all(done.stdout)}
    assert {"Deployment", "Service", "ClusterRole", "ClusterRoleBinding", "NetworkPolicy"} <= kinds
