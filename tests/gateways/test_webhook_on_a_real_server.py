"""The webhook behind a real kube-apiserver: what it refuses, what it lets pass, and what happens when it is gone."""

from __future__ import annotations

import base64
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.realplane import SERVERS, RealPlane
from tests.api.crd_judge import CRDS, crds
from tests.api.test_real_server import Kubectl
from tests.builders.objects import Builder, machine, machine_set
from tests.gateways.pems import issue
from tests.gateways.test_webhook_manifests import load
from tests.realplane import REAL, require

pytestmark = [*REAL, pytest.mark.kubectl]

FIELD = "spec.template.spec.providerConfig.value.bootSeconds"


class Webhook:
    """``nodewright webhook`` as a process."""

    def __init__(self, folder: Path) -> None:
        self.pems = issue("webhook")
        files = self.pems.write(folder)
        options = [f"--tls-cert-file={files[0]}", f"--tls-private-key-file={files[1]}", "--port=0"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "nodewright.cli", "webhook", *options], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        assert ready.startswith("ready: serving reviews at "), ready
        self.url = ready.split()[-1]

    def configuration(self) -> dict[str, Any]:
        """That of deploy/, with an address on loopback."""
        body: dict[str, Any] = load("validatingwebhookconfiguration")
        body["webhooks"][0]["clientConfig"] = {
            "url": self.url,
            "caBundle": base64.b64encode(self.pems.certificate).decode(),
        }
        body["webhooks"][0]["timeoutSeconds"] = (
            30  # the longest: one that gets no processor for less refuses in the end
        )
        return body

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        with self.process:
            return self.process.wait(120)


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path) -> Iterator[Kubectl]:
    require(SERVERS)
    with RealPlane(tmp_path_factory.mktemp("plane")) as plane:
        run = Kubectl(kubectl_binary, plane.kubeconfig)
        run.ok("apply", "--server-side", "-f", str(CRDS))
        names = [c["metadata"]["name"] for c in crds().values()]
        run.ok("wait", "--for=condition=Established", "--timeout=180s", "crd", *names)
        yield run


def plain(builder: Builder) -> dict[str, Any]:
    body = builder.build()
    body["metadata"] = {k: v for k, v in body["metadata"].items() if k in ("name", "namespace", "labels", "finalizers")}
    body.pop("status", None)
    return body


def good(name: str) -> dict[str, Any]:
    return plain(machine_set(name).replicas(1))


def bad(name: str) -> dict[str, Any]:
    return plain(machine_set(name).replicas(1).provider_config(bootSeconds="soon"))


def test_the_webhook_behind_a_real_api_server(kubectl: Kubectl, tmp_path: Path) -> None:
    old = {**bad("old"), "metadata": {**bad("old")["metadata"], "finalizers": ["example.test/hold"]}}
    kubectl.ok("create", "-f", "-", body=old)
    webhook = Webhook(tmp_path)
    kubectl.ok("apply", "-f", "-", body=webhook.configuration())
    _takes_effect(kubectl)

    refused = kubectl("create", "-f", "-", body=bad("new"))
    assert refused.returncode != 0
    said = f"The MachineSet \"new\" is invalid: {FIELD}: must be an object or a number, is 'soon'\n"
    assert refused.stderr == said, "as if the API server had found it itself"

    kubectl.ok("create", "-f", "-", body=good("new"))
    other = plain(machine("other").provider_config(apiVersion="other.dev/v1", kind="Other"))
    warned = kubectl("create", "-f", "-", body=other)
    assert warned.returncode == 0
    assert "Warning: spec.providerConfig.value.apiVersion: no installed provider" in warned.stderr

    kubectl.ok("label", "machineset/old", "a=b")
    kubectl.ok("scale", "machineset/old", "--replicas=2")
    kubectl.ok("delete", "machineset/old", "--wait=false")
    kubectl.ok("patch", "machineset/old", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert kubectl("get", "machineset/old").returncode != 0, "it is gone"

    assert webhook.stop() == 0
    kubectl.ok("create", "-f", "-", body=bad("while-it-is-down"))


def _takes_effect(kubectl: Kubectl) -> None:
    """API servers read new configurations within seconds; a dry run shows when."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if kubectl("create", "--dry-run=server", "-f", "-", body=bad("probe")).returncode != 0:
            return
    raise AssertionError("the webhook is never asked")
