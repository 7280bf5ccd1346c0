"""The one cloud of the tests on a real OpenStack."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.openstack.tier import TestCloud, test_cloud


@pytest.fixture(scope="session")
def openstack_cloud() -> Iterator[TestCloud]:
    yield from test_cloud()
