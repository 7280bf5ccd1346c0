"""Fixtures of the end-to-end tests: the program on each plane, started once a module, and the stock kubectl."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.program import Kubectl, Program, Run, Up
from hack.realplane import RealPlane
from tests.realplane import PLANES, require


@pytest.fixture(scope="module", params=PLANES)
def up(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path
) -> Iterator[Program]:
    """Controllers and simulated hosts at work: all in one process, or `nodewright run` beside Kubernetes itself."""
    folder = tmp_path_factory.mktemp("up")
    if request.param == "embedded":
        with Up(folder, kubectl_binary, "--in-memory") as running:
            yield running
        return
    require()
    plane: RealPlane = request.getfixturevalue("real_plane")
    with Run(folder, Kubectl(kubectl_binary, plane.kubeconfig, folder / "kubectl-cache")) as running:
        yield running
        running.kubectl("delete", "md,ms,ma,cl", "--all", "--wait", "--timeout=240s", timeout=300)


@pytest.fixture
def kubectl(up: Program) -> Kubectl:
    return up.kubectl
