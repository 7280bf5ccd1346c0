"""The CRDs and the table of samples on a real kube-apiserver: the arbiter of what ``crd_judge`` only imitates."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.kinds import KINDS
from hack.realplane import RealPlane
from tests.api.crd_judge import CRDS, crds
from tests.api.samples import BAD, GOOD, changed, examples
from tests.realplane import REAL

pytestmark = REAL


class Kubectl:
    """Runs kubectl against one server; every call has a deadline."""

    def __init__(self, binary: Path, kubeconfig: Path) -> None:
        self._base = [str(binary), f"--kubeconfig={kubeconfig}"]

    def __call__(self, *arguments: str, body: Any = None) -> subprocess.CompletedProcess[str]:
        text = json.dumps(body) if body is not None else None
        return subprocess.run(
            [*self._base, *arguments], input=text, capture_output=True, text=True, timeout=300, check=False
        )

    def ok(self, *arguments: str, body: Any = None) -> str:
        done = self(*arguments, body=body)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def kubectl(real_plane: RealPlane, kubectl_binary: Path) -> Iterator[Kubectl]:
    """On the plane that has our CRDs; nothing is left on it."""
    run = Kubectl(kubectl_binary, real_plane.kubeconfig)
    yield run
    run.ok("delete", "ms,md,ma", "--all", "--wait")


@pytest.mark.parametrize("kind", KINDS)
def test_the_server_takes_the_crd_as_structural(kubectl: Kubectl, kind: str) -> None:
    crd = json.loads(kubectl.ok("get", "crd", crds()[kind]["metadata"]["name"], "-o", "json"))
    conditions = {c["type"]: c["status"] for c in crd["status"]["conditions"]}
    assert conditions["Established"] == "True"
    assert conditions["NamesAccepted"] == "True"
    assert "NonStructuralSchema" not in conditions


ACCEPTED = {**GOOD, **examples()}


@pytest.mark.parametrize("obj", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_the_server_accepts_good_objects(kubectl: Kubectl, obj: dict[str, Any]) -> None:
    kubectl.ok("create", "--dry-run=server", "--validate=strict", "-f", "-", body=obj)


@pytest.mark.parametrize("name", [name for name, sample in BAD.items() if sample.server])
def test_the_server_refuses_bad_objects_with_the_field_named(kubectl: Kubectl, name: str) -> None:
    done = kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", body=BAD[name].obj)
    assert done.returncode != 0
    assert BAD[name].server in done.stderr


@pytest.mark.parametrize(
    "name", [name for name, sample in BAD.items() if not sample.server and name != "name in capitals"]
)
def test_what_is_said_to_escape_the_server_does_escape_it(kubectl: Kubectl, name: str) -> None:
    obj = BAD[name].obj
    obj["metadata"].pop("namespace", None)
    kubectl.ok("create", "--dry-run=server", "-f", "-", body=obj)


def test_text_and_unknown_fields_of_a_machine_come_back_as_they_were_given(kubectl: Kubectl) -> None:
    text = "apiVersion: simulated.nodewright.dev/v1alpha1\nkind: SimulatedMachineConfig\n"
    machine = changed("machine", {"metadata.name": "text", "spec.providerConfig": text, "spec.older": {"a": [1]}})
    kubectl.ok("create", "-f", "-", body=machine)
    spec = json.loads(kubectl.ok("get", "machine", "text", "-o", "json"))["spec"]
    assert spec["providerConfig"] == text
    assert spec["older"] == {"a": [1]}


def test_a_host_may_be_let_go_but_not_exchanged(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", body=changed("machine", {"metadata.name": "host"}))

    def patch(value: str | None) -> subprocess.CompletedProcess[str]:
        return kubectl("patch", "machine", "host", "--type=merge", "-p", json.dumps({"spec": {"providerID": value}}))

    assert patch("sim://1").returncode == 0
    assert "spec.providerID" in patch("sim://2").stderr
    assert patch(None).returncode == 0
    assert patch("sim://2").returncode == 0


def test_a_deployments_selector_is_immutable(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", body=changed("deployment", {"metadata.name": "fixed"}))
    other = {"matchLabels": {"pool": "b"}}
    patch = {"spec": {"selector": other, "template": {"metadata": {"labels": {"pool": "b"}}}}}
    done = kubectl("patch", "machinedeployment", "fixed", "--type=merge", "-p", json.dumps(patch))
    assert "spec.selector" in done.stderr


def test_scale_reads_and_writes_replicas_and_hands_out_the_selector(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", body=changed("set", {"metadata.name": "scaled"}))
    status = json.dumps({"status": {"replicas": 1, "labelSelector": "pool=a"}})
    kubectl.ok("patch", "ms", "scaled", "--subresource=status", "--type=merge", "-p", status)
    kubectl.ok("scale", "ms/scaled", "--replicas=4")
    scale = json.loads(kubectl.ok("get", "ms", "scaled", "--subresource=scale", "-o", "json"))
    assert scale["spec"]["replicas"] == 4
    assert scale["status"] == {"replicas": 1, "selector": "pool=a"}


def test_an_object_with_a_long_name_from_before_can_still_be_changed(kubectl: Kubectl) -> None:
    """A take-over: the name was legal when the object was made, and its deletion must not get stuck."""
    crd = json.loads(json.dumps(crds()["MachineSet"]))
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["x-kubernetes-validations"] = []
    kubectl.ok("apply", "--server-side", "--force-conflicts", "-f", "-", body=crd)
    name = "l" * 55
    _until_created(kubectl, changed("set", {"metadata.name": name}))
    kubectl.ok("apply", "--server-side", "--force-conflicts", "-f", str(CRDS))
    kubectl.ok("patch", "ms", name, "--type=merge", "-p", '{"metadata":{"finalizers":["example.com/wait"]}}')
    kubectl.ok("patch", "ms", name, "--type=merge", "-p", '{"spec":{"replicas":2},"metadata":{"finalizers":null}}')
    kubectl.ok("delete", "ms", name)


def _until_created(kubectl: Kubectl, obj: dict[str, Any]) -> None:
    """The server takes a new schema up a moment after it answered; each try is a round trip, so no sleep is needed."""
    deadline = time.monotonic() + 300
    while True:
        done = kubectl("create", "-f", "-", body=obj)
        if done.returncode == 0:
            return
        assert time.monotonic() < deadline, done.stderr
