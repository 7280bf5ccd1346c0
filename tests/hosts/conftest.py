"""A lab for each test file, removed whatever happens."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.hosts import __main__ as hosts
from hack.hosts.lab import Lab


@pytest.fixture(scope="session")
def lab_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    why = hosts.missing()
    if why and os.environ.get("CI"):
        pytest.fail(why)
    if why:
        pytest.skip(why)
    return tmp_path_factory.mktemp("lab") / "lab"


@pytest.fixture(scope="session")
def lab(lab_folder: Path) -> Iterator[Lab]:
    made = Lab.make(lab_folder)
    yield made
    made.clean()
