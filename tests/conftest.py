"""The stock kubectl, and the real control plane: one for all tests of a process, begun when one of them asks for it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from hack import binaries
from hack import kubectl as stock
from hack.program import Kubectl
from hack.realplane import CONTROLLER_MANAGER, SERVERS, RealPlane
from nodewright.crds import load_crds
from tests import examples, goodbyes
from tests.kubectl.manifests import WIDGET_CRD
from tests.realplane import AS_EMBEDDED, LIKE_EMBEDDED, lacking, left_out, require

examples.register()
goodbyes.register()
_CONFIGURE = structlog.configure


def _without_cache(*args: Any, **options: Any) -> None:
    """Loggers of modules outlive a test: one that is cached would never hear of the next test's configuration."""
    _CONFIGURE(*args, **{**options, "cache_logger_on_first_use": False})


structlog.configure = _without_cache
os.environ.pop("KUBERNETES_SERVICE_HOST", None)  # tests in a pod are no pods: their servers are on loopback


LONG = frozenset(
    {
        "tests/cli/test_create_cluster.py",
        "tests/cli/test_two_processes.py",
        "tests/cli/test_run.py",
        "tests/cli/test_demo.py",
        "tests/cli/test_serving.py",
        "tests/controllers/controlplane/test_quorum.py",
        "tests/docs/test_create_cluster.py",
        "tests/docs/test_first_cluster.py",
        "tests/e2e/test_kep_story.py",
        "tests/gateways/cloudpool/test_burst.py",
        "tests/sim/test_control_planes.py",
    }
)
"""Files that take a minute or more: a worker that began one last would keep the others waiting."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long files first. Without a real plane its tests are left out together, so that one line can say it."""
    items.sort(key=lambda item: item.nodeid.partition("::")[0] not in LONG)
    if left_out():
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("realplane")])
        items[:] = [item for item in items if not item.get_closest_marker("realplane")]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if why := left_out():
        terminalreporter.write_line(f"tests on a real control plane are left out: {why}")


@pytest.fixture(scope="session")
def kubectl_binary() -> Path:
    """The stock kubectl. Without one, what needs it can't prove anything: it is skipped, or in CI fails, and says how
    to get one.
    """
    found = stock.find()
    if found is None:
        lacking(stock.HOW_TO_GET_IT)
    return found


@pytest.fixture(scope="session")
def real_plane(tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path) -> Iterator[RealPlane]:
    """etcd, kube-apiserver and, where there is one, kube-controller-manager, with our CRDs and the tests' Widget."""
    require(SERVERS)
    folder = tmp_path_factory.mktemp("real-plane")
    managed = binaries.find(CONTROLLER_MANAGER) is not None
    with RealPlane(folder, LIKE_EMBEDDED, controller_manager=managed, controllers=AS_EMBEDDED) as plane:
        kubectl = Kubectl(kubectl_binary, plane.kubeconfig, folder / "kubectl-cache")
        crds = {"apiVersion": "v1", "kind": "List", "items": [*load_crds(), WIDGET_CRD]}
        kubectl("create", "-f", "-", stdin=json.dumps(crds))
        kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=180s", timeout=240)
        if managed:
            # The garbage collector looks for new kinds at its start, and then every half minute.
            plane.stop(CONTROLLER_MANAGER)
            plane.start(CONTROLLER_MANAGER)
        yield plane
