"""deploy/components/webhook fits the program: its kinds, its path, its port, its options; and kustomize builds it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from api import names
from nodewright.crds import load_crds
from nodewright.gateways.admission.server import PATH
from tests.cli.test_docs import options_of
from tests.docs.pages import ROOT

DEPLOY = ROOT / "deploy"
COMPONENT = DEPLOY / "components" / "webhook"


def load(name: str) -> Any:
    return yaml.safe_load((COMPONENT / f"{name}.yaml").read_text())


def container() -> Any:
    (found,) = load("deployment")["spec"]["template"]["spec"]["containers"]
    return found


def webhook() -> Any:
    (found,) = load("validatingwebhookconfiguration")["webhooks"]
    return found


def test_all_our_kinds_are_reviewed_and_nothing_else() -> None:
    (rule,) = webhook()["rules"]
    definitions = [crd["spec"] for crd in load_crds() if crd["spec"]["group"] == names.GROUP]
    assert set(rule["resources"]) == {spec["names"]["plural"] for spec in definitions}
    assert set(rule["apiGroups"]) == {spec["group"] for spec in definitions}
    assert set(rule["apiVersions"]) == {version["name"] for spec in definitions for version in spec["versions"]}
    assert rule["operations"] == ["CREATE", "UPDATE"], "a delete is nobody's to refuse"


def test_a_webhook_that_is_down_keeps_nobody_from_working() -> None:
    assert webhook()["failurePolicy"] == "Ignore"
    assert webhook()["timeoutSeconds"] <= 5
    assert webhook()["sideEffects"] == "None"


def test_the_service_leads_to_the_server() -> None:
    client = webhook()["clientConfig"]["service"]
    service = load("service")
    (port,) = service["spec"]["ports"]
    assert client["path"] == PATH
    assert (client["name"], client["port"]) == (service["metadata"]["name"], port["port"])
    assert client["namespace"] == service["metadata"]["namespace"]
    ports = {found["name"]: found["containerPort"] for found in container()["ports"]}
    assert f"--port={ports[port['targetPort']]}" in container()["args"]
    labels = load("deployment")["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()


def test_the_container_runs_a_command_that_exists_with_options_that_exist() -> None:
    command, *options = container()["args"]
    assert {option.partition("=")[0] for option in options} <= options_of(command)


def test_it_runs_without_rights_and_without_a_token() -> None:
    pod = load("deployment")["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    security = container()["securityContext"]
    assert security["readOnlyRootFilesystem"] is True
    assert security["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.kubectl
def test_kustomize_builds_it(tmp_path: Path, kubectl_binary: Path) -> None:
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    overlay = tmp_path / "deploy" / "overlay"
    overlay.mkdir()
    components = ["../components/webhook", "../components/webhook-cert-manager"]
    desired = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "components": components}
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(desired))
    done = subprocess.run(
        [kubectl_binary, "kustomize", overlay], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    built = {obj["kind"]: obj for obj in yaml.safe_load_all(done.stdout)}
    annotations = built["ValidatingWebhookConfiguration"]["metadata"]["annotations"]
    certificate = built["Certificate"]
    meta = certificate["metadata"]
    assert annotations["cert-manager.io/inject-ca-from"] == f"{meta['namespace']}/{meta['name']}"
    service = built["Service"]["metadata"]
    assert f"{service['name']}.{service['namespace']}.svc" in certificate["spec"]["dnsNames"]
    (secret,) = [v["secret"] for v in built["Deployment"]["spec"]["template"]["spec"]["volumes"] if "secret" in v]
    assert secret["secretName"] == certificate["spec"]["secretName"]
