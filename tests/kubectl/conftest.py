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

from nodewright.controlplane.app import ControlPlaneConfig
from nodewright.controlplane.app.background import serve_in_background
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
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The administrator's kubeconfig; the embedded plane runs in a thread and keeps its state in a file."""
    if _FOREIGN:
        yield Path(_FOREIGN)
        return
    folder = tmp_path_factory.mktemp("plane")
    with serve_in_background(ControlPlaneConfig(data_dir=folder / "data", crds=(WIDGET_CRD,))) as background:
        yield background.plane.kubeconfig_path


@pytest.fixture(scope="session")
def terminal(binary: str, kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """The kubectl of the administrator, in the namespace `default`, on a server that has the Widget kind."""
    terminal = Terminal(binary, kubeconfig, tmp_path_factory.mktemp("kubectl"), "default")
    if _FOREIGN:
        terminal.apply(WIDGET_CRD)
        terminal("wait", "--for=condition=Established", f"crd/{WIDGETS}")
    return terminal


@pytest.fixture
def kubectl(terminal: Terminal) -> Terminal:
    """The kubectl of the administrator, in a new namespace."""
    name = f"test-{os.getpid()}-{next(_NUMBERS)}"
    terminal("create", "namespace", name)
    return replace(terminal, namespace=name)


@pytest.fixture
def controllers() -> None:
    """What kube-controller-manager does (garbage collection, budgets): the plane does it, a bare kube-apiserver not."""
    if _FOREIGN:
        pytest.skip("needs kube-controller-manager beside the server of NODEWRIGHT_TEST_KUBECONFIG")
