"""What the tests of whole programs use to wait, held to the stock kubectl."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hack.program import CommandFailed, Kubectl
from tests.kubectl.manifests import widget
from tests.kubectl.terminal import Terminal

LATE = ("jsonpath={.metadata.name}=late", "widget/late")


@pytest.fixture
def harness(kubectl: Terminal, tmp_path: Path) -> Kubectl:
    return Kubectl(Path(kubectl.binary), kubectl.kubeconfig, tmp_path / "cache")


def test_wait_also_waits_for_an_object_that_does_not_exist_yet(kubectl: Terminal, harness: Kubectl) -> None:
    assert "NotFound" in kubectl.fails("wait", f"--for={LATE[0]}", LATE[1], "--timeout=60s")
    timer = threading.Timer(0.5, kubectl.create, [widget("late")])
    timer.start()
    harness.wait(*LATE, f"--namespace={kubectl.namespace}", timeout=60)
    timer.join()


def test_wait_ends_for_an_object_that_never_comes(kubectl: Terminal, harness: Kubectl) -> None:
    with pytest.raises(CommandFailed, match="NotFound"):
        harness.wait(*LATE, f"--namespace={kubectl.namespace}", timeout=1)
