"""``nodewright bootstrap render``: what the host of a Machine would get, without its secret, and without making any."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.names import HOST_FILES_SECRET_TYPE
from controllers.bootstrap.credentials import token_ids
from hack.program import Kubectl, Up
from tests.builders.objects import SIMULATED
from tests.cli.processes import nodewright

pytestmark = pytest.mark.kubectl


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path) -> Iterator[Kubectl]:
    with Up(tmp_path_factory.mktemp("render"), kubectl_binary, "--in-memory", "--no-controllers") as running:
        yield running.kubectl


def a_machine(kubectl: Kubectl, name: str, version: str = "1.32.1", **bootstrap: Any) -> str:
    """Its UID."""
    spec = {"bootstrap": bootstrap, "versions": {"kubelet": version}, "providerConfig": {"value": SIMULATED}}
    head = {"apiVersion": "cluster.k8s.io/v1alpha1", "kind": "Machine", "metadata": {"name": name}}
    kubectl("apply", "-f", "-", stdin=json.dumps({**head, "spec": spec}))
    return str(kubectl.json("get", "machine", name)["metadata"]["uid"])


def rendered(kubectl: Kubectl, *arguments: str) -> Any:
    return nodewright("bootstrap", "render", *arguments, "--kubeconfig", str(kubectl.kubeconfig))


def test_it_prints_what_the_host_would_get_and_makes_nothing(plane: Kubectl) -> None:
    uid = a_machine(
        plane, "m-1", endpoint="https://10.0.0.1:6443", archives={"kubernetes": {"mirror": "https://mirror.example"}}
    )
    done = rendered(plane, "m-1", "--format", "shell")
    assert done.returncode == 0, done.stderr
    assert "https://mirror.example/v1.32.1/bin/linux/amd64/kubelet" in done.stdout
    assert rendered(plane, "m-1").stdout.startswith("#cloud-config\n")
    assert plane.items("secrets", "-A", "--field-selector=type=bootstrap.kubernetes.io/token") == []
    assert token_ids(uid)[0]


def test_a_file_whose_content_is_secret_is_shown_by_where_that_lies(plane: Kubectl) -> None:
    content = "bm90LXRvLWJlLXNob3du"
    body = {"apiVersion": "v1", "kind": "Secret", "type": HOST_FILES_SECRET_TYPE, "metadata": {"name": "creds"}}
    plane("apply", "-f", "-", stdin=json.dumps({**body, "data": {"token": content}}))
    file = {"path": "/etc/creds", "contentFrom": {"secret": {"name": "creds", "key": "token"}}}
    a_machine(plane, "m-4", endpoint="https://10.0.0.1:6443", files=[file])
    done = rendered(plane, "m-4", "--format", "shell")
    assert done.returncode == 0, done.stderr
    assert base64.b64encode(b"[key token of Secret creds]").decode()[:-4] in done.stdout.replace("\n", "")
    assert content not in done.stdout
    assert base64.b64decode(content).decode() not in done.stdout


def test_what_is_refused_is_said_as_on_the_machine(plane: Kubectl) -> None:
    a_machine(plane, "m-2")
    assert "NoEndpoint" in rendered(plane, "m-2").stderr
    a_machine(plane, "m-3", "1.99.0", endpoint="https://10.0.0.1:6443")
    done = rendered(plane, "m-3")
    assert done.returncode == 1
    assert "VersionSkew: spec.versions.kubelet" in done.stderr


def test_a_machine_that_is_not_there_or_asks_for_nothing_is_told(plane: Kubectl) -> None:
    assert "does not exist" in rendered(plane, "nobody").stderr
    head = {"apiVersion": "cluster.k8s.io/v1alpha1", "kind": "Machine", "metadata": {"name": "plain"}}
    plane("apply", "-f", "-", stdin=json.dumps({**head, "spec": {"providerConfig": {"value": SIMULATED}}}))
    assert "nobody asks for bootstrap data" in rendered(plane, "plain").stderr
