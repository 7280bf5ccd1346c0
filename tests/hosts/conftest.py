"""A lab for each test file, removed whatever happens."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack import binaries
from hack.hosts import __main__ as hosts
from hack.hosts import parts, tree
from hack.hosts.lab import Lab
from hack.hosts.provider.provider import API_VERSION, KIND
from providers.base.registry import Registry


def missing() -> str:
    lacking = [name for name in hosts.PROGRAMS if binaries.find(name) is None]
    lacking += [name for name in hosts.PREVIOUS_PROGRAMS if binaries.find(name, binaries.PREVIOUS) is None]
    if parts.missing():
        return parts.missing()
    if Registry.installed().find(API_VERSION, KIND) is None:
        lacking.append("the lab's provider")
    return f"{', '.join(lacking) or 'the tree'} not found: {parts.REMEDY}" if lacking or tree.find() is None else ""


@pytest.fixture(scope="session")
def lab_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    why = missing()
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
