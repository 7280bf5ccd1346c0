"""One server for all of these tests, and for each of them a namespace of its own.

The server is the embedded plane, or the one of the kubeconfig named by NODEWRIGHT_TEST_KUBECONFIG: on a real
kube-apiserver the same tests say whether they ask for the right thing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from nodewright.controlplane.app import ControlPlane, ControlPlaneConfig
from nodewright.controlplane.app.background import BackgroundPlane, serve_in_background
from tests.kubectl.manifests import WIDGET_CRD, WIDGETS
from tests.kubectl.terminal import Terminal

_REMEDY = (
    "kubectl is not on PATH. Take the distribution's (Debian: apt-get install kubernetes-client) or build the pinned "
    "one from its Go module (k8s.io/kubernetes/cmd/kubectl), then run again."
)
_FOREIGN = os.environ.get("NODEWRIGHT_TEST_KUBECONFIG", "")
_NUMBERS = count(1)


@pytest.fixture(scope="session")
def binary() -> str:
    """The stock kubectl."""
    found = shutil.which("kubectl")
    if found is None:
        pytest.skip(_REMEDY)
    return found


@pytest.fixture(scope="session")
def background(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackgroundPlane | None]:
    """The embedded plane, in a thread and with its state in a file; None if the tests go to another server."""
    if _FOREIGN:
        yield None
        return
    folder = tmp_path_factory.mktemp("plane")
    with serve_in_background(ControlPlaneConfig(data_dir=folder / "data", crds=(WIDGET_CRD,))) as background:
        yield background


@pytest.fixture(scope="session")
def terminal(binary: str, background: BackgroundPlane | None, tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """The kubectl of the administrator, in the namespace `default`, on a server that has the Widget kind."""
    cache = tmp_path_factory.mktemp("kubectl")
    if background is not None:
        return Terminal(binary, background.plane.kubeconfig_path, cache, "default")
    terminal = Terminal(binary, Path(_FOREIGN), cache, "default")
    terminal.apply(WIDGET_CRD)
    terminal("wait", "--for=condition=Established", f"crd/{WIDGETS}")
    return terminal


@pytest.fixture
def kubectl(terminal: Terminal, background: BackgroundPlane | None) -> Terminal:
    """The kubectl of the administrator, in a new namespace."""
    name = f"test-{os.getpid()}-{next(_NUMBERS)}"
    if background is not None:
        background.call(lambda plane: create_namespace(plane, name))
    else:
        terminal("create", "namespace", name)
    return replace(terminal, namespace=name)


def create_namespace(plane: ControlPlane, name: str) -> None:
    """Create a namespace without a process of its own: these tests need one each."""
    resource = plane.store.resources.find("", "v1", "namespaces")
    assert resource is not None
    plane.store.create(resource, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


@pytest.fixture
def whole_cluster() -> None:
    """What kube-controller-manager and kubelets do beside a kube-apiserver, and the plane does by itself."""
    if _FOREIGN:
        pytest.skip("needs a kube-controller-manager and kubelets beside the server of NODEWRIGHT_TEST_KUBECONFIG")
