"""Fixtures of the OpenStack provider's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.openstack_tier import TestCloud, test_cloud


@pytest.fixture(scope="session")
def openstack_cloud() -> Iterator[TestCloud]:
    yield from test_cloud()
