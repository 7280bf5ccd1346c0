"""One server of each plane for all of these tests, and for each of them a namespace of its own.

The server is the embedded plane, the real one, or alone the one of the kubeconfig that NODEWRIGHT_TEST_KUBECONFIG
names: on any kube-apiserver the same tests say whether they ask for the right thing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pytest

from hack.realplane import RealPlane
from nodewright.apiserver.app import APIServer, APIServerConfig
from nodewright.apiserver.app.background import BackgroundPlane, serve_in_background
from tests.kubectl.manifests import WIDGET_CRD, WIDGETS
from tests.kubectl.terminal import Terminal
from tests.realplane import PLANES, require

_FOREIGN = os.environ.get("NODEWRIGHT_TEST_KUBECONFIG", "")
_NUMBERS = count(1)


@dataclass(frozen=True, slots=True)
class Server:
    """Which server the tests speak to. ``background`` is there for the embedded plane alone."""

    kind: str
    kubeconfig: Path
    background: BackgroundPlane | None = None


@pytest.fixture(scope="session", params=["foreign"] if _FOREIGN else PLANES)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The embedded plane, in a thread and with its state in a file, then the real one."""
    if request.param == "foreign":
        yield Server("foreign", Path(_FOREIGN))
    elif request.param == "real":
        plane: RealPlane = request.getfixturevalue("real_plane")
        yield Server("real", plane.kubeconfig)
    else:
        folder = tmp_path_factory.mktemp("plane")
        with serve_in_background(APIServerConfig(data_dir=folder / "data", crds=(WIDGET_CRD,))) as background:
            yield Server("embedded", background.plane.kubeconfig_path, background)


@pytest.fixture(scope="session")
def terminal(kubectl_binary: Path, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """The kubectl of the administrator, in the namespace `default`, on a server that has the Widget kind."""
    cache = tmp_path_factory.mktemp("kubectl")
    terminal = Terminal(str(kubectl_binary), server.kubeconfig, cache, "default")
    if server.kind == "foreign":
        terminal.apply(WIDGET_CRD)
        terminal("wait", "--for=condition=Established", f"crd/{WIDGETS}")
    return terminal


@pytest.fixture
def kubectl(terminal: Terminal, server: Server) -> Terminal:
    """The kubectl of the administrator, in a new namespace."""
    name = f"test-{os.getpid()}-{next(_NUMBERS)}"
    if server.background is not None:
        server.background.call(lambda plane: create_namespace(plane, name))
    else:
        terminal("create", "namespace", name)
    return replace(terminal, namespace=name)


def create_namespace(plane: APIServer, name: str) -> None:
    """Create a namespace without a process of its own: these tests need one each."""
    resource = plane.store.resources.find("", "v1", "namespaces")
    assert resource is not None
    plane.store.create(resource, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


@pytest.fixture
def controllers(server: Server) -> None:
    """What kube-controller-manager does beside a kube-apiserver, and the embedded plane by itself."""
    if server.kind == "real":
        require()
    elif server.kind == "foreign":
        pytest.skip("needs a kube-controller-manager beside the server of NODEWRIGHT_TEST_KUBECONFIG")


@pytest.fixture
def kubelets(server: Server) -> None:
    """What kubelets do for Pods that are deleted: only the embedded plane does without."""
    if server.kind != "embedded":
        pytest.skip("needs kubelets beside the kube-apiserver: without them no Pod on a Node ever ends")
