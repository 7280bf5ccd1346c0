"""One plane for all of these tests, and for each of them a namespace of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from nodewright.controlplane.app import ControlPlaneConfig
from nodewright.controlplane.app.background import BackgroundPlane, serve_in_background
from tests.kubectl.manifests import WIDGET_CRD
from tests.kubectl.terminal import Terminal

_REMEDY = (
    "kubectl is not on PATH. Take the distribution's (Debian: apt-get install kubernetes-client) or build the pinned "
    "one from its Go module (k8s.io/kubernetes/cmd/kubectl), then run again."
)
_NUMBERS = count(1)


@pytest.fixture(scope="session")
def binary() -> str:
    """The stock kubectl."""
    found = shutil.which("kubectl")
    if found is None:
        pytest.skip(_REMEDY)
    return found


@pytest.fixture(scope="session")
def background(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackgroundPlane]:
    """A plane in a thread, with the Widget kind installed and its state in a file, as in real use."""
    folder = tmp_path_factory.mktemp("plane")
    with serve_in_background(ControlPlaneConfig(data_dir=folder / "data", crds=(WIDGET_CRD,))) as background:
        yield background


@pytest.fixture(scope="session")
def terminal(binary: str, background: BackgroundPlane, tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """The kubectl of the administrator, in the namespace `default`."""
    cache: Path = tmp_path_factory.mktemp("kubectl")
    return Terminal(binary, background.plane.kubeconfig_path, cache, "default")


@pytest.fixture
def kubectl(terminal: Terminal) -> Terminal:
    """The kubectl of the administrator, in a new namespace."""
    name = f"test-{next(_NUMBERS)}"
    terminal("create", "namespace", name)
    return replace(terminal, namespace=name)
