"""`nodewright install --controllers` and `uninstall`: what they render, put in place, and refuse to take away."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from controllers.kernel.refs import Key, Kind
from hack.program import Kubectl
from hack.realplane import RealPlane
from nodewright.cli.exits import CliError
from nodewright.cli.installation import manifests
from nodewright.cli.installation.applying import How, put
from nodewright.cli.installation.kinds import KINDS
from nodewright.cli.installation.manifests import BROUGHT, PART_OF, Choice, components, render
from nodewright.runtime.kube.errors import ApiError
from tests.cli.processes import nodewright
from tests.docs.pages import ROOT
from tests.realplane import AS_EMBEDDED, REAL, require

IMAGE = "registry.example:5000/team/nodewright:0.1.0"
NAMESPACE = "nodewright-system"
MACHINE = {
    "apiVersion": "cluster.k8s.io/v1alpha1",
    "kind": "Machine",
    "metadata": {"name": "left", "namespace": "default"},
    "spec": {
        "providerConfig": {
            "value": {"apiVersion": "simulated.nodewright.dev/v1alpha1", "kind": "SimulatedMachineConfig"}
        }
    },
}


def test_every_kind_in_deploy_can_be_addressed() -> None:
    known = {(kind.api_version, kind.name) for kind in KINDS}
    for path in (ROOT / "deploy").rglob("*.yaml"):
        for obj in yaml.load_all(path.read_text(), yaml.CSafeLoader):
            if obj and "kind" in obj and "kustomize.config" not in obj["apiVersion"]:
                assert (obj["apiVersion"], obj["kind"]) in known, path


@pytest.mark.kubectl
@pytest.mark.parametrize("layout", manifests.LAYOUTS)
def test_what_is_rendered_is_the_folder_with_the_image(kubectl_binary: Path, layout: str) -> None:
    folder = Kubectl(kubectl_binary, Path("/dev/null"), Path("/tmp"))("kustomize", str(ROOT / "deploy" / layout))
    expected = list(yaml.load_all(folder, yaml.CSafeLoader))
    found = render(Choice(IMAGE, layout))
    images = {
        c["image"] for o in found if o["kind"] == "Deployment" for c in o["spec"]["template"]["spec"]["containers"]
    }
    assert images == {IMAGE}
    assert all(o["metadata"]["labels"][PART_OF] == "nodewright" for o in found)
    assert [_bare(o) for o in found] == [_bare(o) for o in expected]


def _bare(obj: dict[str, object]) -> dict[str, object]:
    """Without what is meant to differ: the image and the label."""
    text = json.loads(json.dumps(obj).replace(IMAGE, "nodewright:0.1.0"))
    labels = text["metadata"].get("labels", {})
    labels.pop(PART_OF, None)
    text["metadata"]["labels"] = labels
    return text  # type: ignore[no-any-return]


@pytest.mark.kubectl
@pytest.mark.parametrize("component", components())
def test_every_component_renders(kubectl_binary: Path, component: str) -> None:
    both = {"webhook-cert-manager": ("webhook", "webhook-cert-manager")}.get(component, (component,))
    kinds = {(kind.api_version, kind.name) for kind in KINDS}
    objects = render(Choice(IMAGE, components=both))
    assert len(objects) > len(render(Choice(IMAGE))) or component in {"webhook-cert-manager", BROUGHT}
    assert {(o["apiVersion"], o["kind"]) for o in objects} <= kinds


class Older:
    """An API server without ValidatingAdmissionPolicies, and without anything else either."""

    def __init__(self) -> None:
        self.made: list[str] = []

    async def get(self, kind: Kind, _key: Key) -> dict[str, Any]:
        raise ApiError(404, "NotFound", f"no {kind.plural}")

    async def apply(self, kind: Kind, _key: Key, obj: dict[str, Any], **_how: bool) -> dict[str, Any]:
        if kind.name.startswith("ValidatingAdmissionPolicy"):
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        self.made.append(kind.name)
        return obj


async def test_an_older_api_server_gets_all_but_the_policies(
    kubectl_binary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = Older()
    objects = [obj for obj in render(Choice(IMAGE)) if obj["kind"] != "CustomResourceDefinition"]
    await put(server, objects, How(dry_run=False, force=False, wait_seconds=0))  # type: ignore[arg-type]
    assert "Deployment" in server.made
    assert not [name for name in server.made if name.startswith("ValidatingAdmissionPolicy")]
    shown = capsys.readouterr().out
    assert "nodewright-machine-fields left out: the API server has no such policies" in shown


def test_the_component_that_is_there_already_may_be_named(kubectl_binary: Path) -> None:
    assert render(Choice(IMAGE, components=(BROUGHT,))) == render(Choice(IMAGE))


def test_a_digest_may_name_the_image(kubectl_binary: Path) -> None:
    image = "registry.example/nodewright@sha256:" + "a" * 64
    (deployment,) = [o for o in render(Choice(image)) if o["kind"] == "Deployment"]
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == image


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--controllers"], "--controllers needs --image. For instance --image=REGISTRY/nodewright:0.1.0"),
        (["--image=a/b:1"], "--image goes with --controllers"),
        (["--print"], "--print goes with --controllers"),
        (["--controllers", "--image=a/b"], "--image 'a/b' names no tag and no digest"),
        (["--controllers", "--image=host:5000/b"], "--image 'host:5000/b' names no tag and no digest"),
        (["--controllers", "--image=a/b: 1"], "names no tag and no digest"),
        (["--controllers", "--image=a/b:1", "--with=../../etc"], "--with ../../etc: there is no such component"),
        (["--controllers", "--image=a/b:1", "--layout=flat"], "--layout flat: there is no such layout"),
    ],
)
def test_flags_that_make_no_sense_are_refused_before_any_cluster_is_reached(arguments: list[str], said: str) -> None:
    done = nodewright("install", *arguments, "--kubeconfig", "/nowhere")
    assert done.returncode == 2
    assert said in done.stderr


def test_without_kubectl_it_says_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(CliError, match="kubectl is needed to render the manifests and is not in PATH"):
        render(Choice(IMAGE))


@pytest.fixture
def kubectl(tmp_path: Path, kubectl_binary: Path) -> Iterator[Kubectl]:
    """Of the administrator of a real API server that has nothing of us yet."""
    require()
    flags = ("--disable-admission-plugins=ServiceAccount",)
    controllers = (*AS_EMBEDDED, "deployment-controller", "replicaset-controller")
    with RealPlane(tmp_path / "plane", flags, controller_manager=True, controllers=controllers) as plane:
        yield Kubectl(kubectl_binary, plane.kubeconfig, tmp_path / "cache")


def _nodewright(kubectl: Kubectl, *arguments: str) -> subprocess.CompletedProcess[str]:
    return nodewright(*arguments, "--kubeconfig", str(kubectl.kubeconfig), timeout=900)


def _install(kubectl: Kubectl, image: str = IMAGE) -> str:
    """What it prints. No kubelet runs here, so no Deployment is waited for."""
    kinds = _nodewright(kubectl, "install")
    assert kinds.returncode == 0, kinds.stderr
    done = _nodewright(kubectl, "install", "--controllers", f"--image={image}", "--with=bootstrap", "--timeout=0")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.kubectl
class TestOnARealServer:
    pytestmark = REAL

    def test_it_is_safe_to_repeat_and_a_newer_image_is_an_upgrade(self, kubectl: Kubectl) -> None:
        assert f"Deployment {NAMESPACE}/nodewright created" in _install(kubectl)
        again = _install(kubectl)
        assert not [line for line in again.splitlines() if line.endswith(("created", "configured"))]
        assert f"Deployment {NAMESPACE}/nodewright configured" in _install(kubectl, f"{IMAGE}1")
        assert kubectl("get", "deployment", "nodewright", f"-n={NAMESPACE}", "-o=jsonpath={..image}") == f"{IMAGE}1"

    def test_a_dry_run_changes_nothing(self, kubectl: Kubectl) -> None:
        done = _nodewright(kubectl, "install", "--controllers", f"--image={IMAGE}", "--dry-run")
        assert done.returncode == 0, done.stderr
        assert f"Deployment {NAMESPACE}/nodewright would be created with its namespace (dry run)" in done.stdout
        assert kubectl("get", "crd,clusterroles", f"-l={PART_OF}=nodewright", "-o=name") == ""
        _install(kubectl)
        shown = _nodewright(kubectl, "uninstall", "--dry-run")
        assert f"Deployment {NAMESPACE}/nodewright would be deleted (dry run)" in shown.stdout
        assert kubectl("get", "deployment", "-n", NAMESPACE, "-o=name")

    def test_pods_that_do_not_come_are_said_with_what_to_look_at(self, kubectl: Kubectl) -> None:
        _install(kubectl)
        done = _nodewright(kubectl, "install", "--controllers", f"--image={IMAGE}", "--with=bootstrap", "--timeout=10")
        assert done.returncode == 1
        assert "0 of 2 replicas available" in done.stderr
        assert f"kubectl -n {NAMESPACE} describe deployment nodewright" in done.stderr

    def test_a_machine_holds_everything(self, kubectl: Kubectl) -> None:
        _install(kubectl)
        kubectl("create", "-f", "-", stdin=json.dumps(MACHINE))
        for flags in ((), ("--crds",), ("--dry-run",)):
            done = _nodewright(kubectl, "uninstall", *flags)
            assert done.returncode == 1
            assert "there is 1 Machine: default/left." in done.stderr
        assert kubectl("get", "deployment", "-n", NAMESPACE, "-o=name").split() == ["deployment.apps/nodewright"]

    def test_the_controllers_go_and_the_kinds_stay_unless_they_are_to_go_too(self, kubectl: Kubectl) -> None:
        _install(kubectl)
        done = _nodewright(kubectl, "uninstall")
        assert done.returncode == 0, done.stderr
        assert kubectl("get", "deployment", "-n", NAMESPACE, "-o=name") == ""
        ours = f"-l={PART_OF}=nodewright"
        assert kubectl("get", "clusterroles,clusterrolebindings,roles", "-A", ours, "-o=name") == ""
        assert "machines.cluster.k8s.io" in kubectl("get", "crd", "-o=name")
        for _ in range(2):
            done = _nodewright(kubectl, "uninstall", "--crds", "--timeout=600")
            assert done.returncode == 0, done.stderr
            left = kubectl("get", "crd", "-o=name").split()
            others = ("capacitybuffers", "capacityquotas", "provisioningrequests")
            prefix = "customresourcedefinition.apiextensions.k8s.io"
            assert left == [f"{prefix}/{name}.autoscaling.x-k8s.io" for name in others]
