"""Where the tests on a real OpenStack get it from, and what they say where it is missing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.openstack.cloud import RealCloud
from hack.openstack.install import missing
from tests.realplane import lacking

REAL = [pytest.mark.openstack, pytest.mark.slow]
"""The marks of what `make e2e-openstack` runs."""
RUNNING = "NODEWRIGHT_TEST_CLOUDS_YAML"
"""Names the clouds.yaml of a test cloud that `make openstack` keeps up, so that tests need not wait for one."""


@dataclass(frozen=True, slots=True)
class TestCloud:
    """The cloud of the tests, told by its clouds.yaml."""

    __test__ = False

    clouds_yaml: Path

    def login(self, **overrides: Any) -> bytes:
        """The clouds.yaml of the project ``demo`` alone; ``overrides`` are options of the SDK."""
        demo = yaml.safe_load(self.clouds_yaml.read_text())["clouds"]["demo"]
        return yaml.safe_dump({"clouds": {"demo": {**demo, **overrides}}}).encode()


def test_cloud() -> Iterator[TestCloud]:
    """A fixture's body: a cloud that runs already, or one that is brought up for the session."""
    running = os.environ.get(RUNNING)
    if running:
        yield TestCloud(Path(running))
        return
    if what := missing():
        lacking(what)
    with RealCloud() as cloud:
        yield TestCloud(cloud.clouds_yaml)


test_cloud.__test__ = False  # type: ignore[attr-defined]
