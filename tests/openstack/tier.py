"""Where the tests on a real OpenStack get it from, and what they say where it is missing."""

from __future__ import annotations

import hashlib
import hmac
import os
import urllib.request
from collections.abc import Iterator, Mapping
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

    def as_the_guest_reads_it(self, server: Mapping[str, Any], path: str) -> bytes:
        """What Nova's metadata service answers to the guest of ``server``, for whom Neutron's agent signs.

        Raises urllib.error.HTTPError if there is nothing at ``path``.
        """
        about = yaml.safe_load((self.clouds_yaml.parent / "metadata.yaml").read_text())
        identity = str(server["id"])
        signature = hmac.new(about["secret"].encode(), identity.encode(), hashlib.sha256).hexdigest()
        headers = {"X-Instance-ID": identity, "X-Instance-ID-Signature": signature, "X-Tenant-ID": server["tenant_id"]}
        request = urllib.request.Request(f"{about['url']}{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())


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
