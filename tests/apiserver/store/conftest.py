from __future__ import annotations

import pytest

from tests.apiserver.store.cluster import Cluster


@pytest.fixture
def cluster() -> Cluster:
    return Cluster().with_machines()
