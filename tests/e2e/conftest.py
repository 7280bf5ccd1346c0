"""Fixtures of the end-to-end tests: the program, started once a module, and the stock kubectl."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hack import kubectl as stock
from hack.program import Kubectl, Up


@pytest.fixture(scope="session")
def kubectl_binary() -> Path:
    """The stock kubectl. Without one these tests can't prove anything: they are skipped and say how to get one."""
    found = stock.find()
    if found is None:
        pytest.skip(stock.HOW_TO_GET_IT)
    return found


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("up")
    with Up(folder, kubectl_binary, "--in-memory") as running:
        yield running


@pytest.fixture
def kubectl(up: Up) -> Kubectl:
    return up.kubectl
