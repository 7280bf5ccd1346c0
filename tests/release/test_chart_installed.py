"""The chart in a real API server: installed, upgraded and uninstalled by helm itself."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hack.program import Kubectl
from hack.realplane import RealPlane
from hack.release import chart
from nodewright import __version__
from tests.builders import machine
from tests.hosts.joining import until
from tests.realplane import REAL, require
from tests.release.test_chart import files as files  # noqa: PLC0414 - a fixture
from tests.release.test_chart import helm_binary as helm_binary  # noqa: PLC0414 - a fixture
from tests.release.test_chart import packed as packed  # noqa: PLC0414 - a fixture

pytestmark = [*REAL, pytest.mark.kubectl]
NAMESPACE = chart.NAMESPACE
RELEASE = "nodewright"
IMAGE = "lab.example/team/nodewright"
ACCOUNT = f"--as=system:serviceaccount:{NAMESPACE}:nodewright"
WITH_RIGHTS = ("--set=components.ssh=true", "--set=components.bootstrap=true")


@dataclass(frozen=True)
class Helm:
    """helm with folders of its own: nothing of the user's is read or written."""

    binary: Path
    folder: Path
    kubeconfig: Path

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        homes = {f"HELM_{name}_HOME": str(self.folder / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
        env = {**os.environ, **homes, "KUBECONFIG": str(self.kubeconfig)}
        command = [str(self.binary), *args, "-n", NAMESPACE]
        return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=env)

    def __call__(self, *args: str) -> str:
        done = self.run(*args)
        assert done.returncode == 0, done.stderr
        return done.stdout


@dataclass(frozen=True)
class Installed:
    helm: Helm
    kubectl: Kubectl
    chart: Path

    def deployment(self) -> dict[str, Any]:
        found: dict[str, Any] = self.kubectl.json("get", "deployment/nodewright", "-n", NAMESPACE)
        return found

    def history(self) -> list[str]:
        return [each["status"] for each in json.loads(self.helm("history", RELEASE, "-o", "json"))]


@pytest.fixture(scope="module")
def installed(
    tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path, helm_binary: Path, packed: Path
) -> Iterator[Installed]:
    require()
    folder = tmp_path_factory.mktemp("helm")
    with RealPlane(folder / "plane", controller_manager=True) as plane:
        helm = Helm(helm_binary, folder, plane.kubeconfig)
        helm(
            "install", RELEASE, str(packed), "--create-namespace", "--set=image.repository=lab.example/team/nodewright"
        )
        yield Installed(helm, Kubectl(kubectl_binary, plane.kubeconfig, folder / "kubectl-cache"), packed)


def test_a_release_is_installed_upgraded_and_taken_away_and_machines_stay(installed: Installed) -> None:
    kubectl, helm = installed.kubectl, installed.helm
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=180s", timeout=240)
    container = installed.deployment()["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == f"{IMAGE}:{__version__}"
    until(lambda: _may(kubectl, "create", "machines.cluster.k8s.io"))
    assert not _reads_pools(kubectl)
    kept = machine("kept").build()
    body = {**kept, "metadata": {"name": "kept", "namespace": "default", "finalizers": ["example.com/kept"]}}
    kubectl("create", "-f", "-", stdin=json.dumps({name: each for name, each in body.items() if name != "status"}))

    helm("upgrade", RELEASE, str(installed.chart), "--reuse-values", "--set=replicas=3", *WITH_RIGHTS)
    assert installed.deployment()["spec"]["replicas"] == 3
    assert installed.deployment()["spec"]["template"]["spec"]["containers"][0]["image"] == container["image"]
    assert _reads_pools(kubectl)

    refused = helm.run("upgrade", RELEASE, str(installed.chart), "--reuse-values", "--set=replicas=many")
    assert refused.returncode
    assert installed.history() == ["superseded", "deployed"]
    helm("rollback", RELEASE, "1")
    assert installed.deployment()["spec"]["replicas"] == 2
    assert not _reads_pools(kubectl)

    helm("uninstall", RELEASE, "--wait")
    assert kubectl.run("get", "deployment/nodewright", "-n", NAMESPACE).code
    assert kubectl("get", "clusterroles,clusterrolebindings", "-o", "name").count("nodewright") == 0
    assert kubectl.json("get", "machine/kept")["metadata"]["finalizers"] == ["example.com/kept"]


def _reads_pools(kubectl: Kubectl) -> bool:
    """Whether the component `ssh` is there, with its binding."""
    found = kubectl("get", "clusterrole,clusterrolebinding", "-o", "name")
    return found.count("/nodewright-ssh\n") == 2


def _may(kubectl: Kubectl, verb: str, resource: str, *flags: str) -> bool:
    return kubectl.run("auth", "can-i", verb, resource, *flags, "--all-namespaces", ACCOUNT).out.strip() == "yes"
