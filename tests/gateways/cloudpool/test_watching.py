"""What a gateway says of the age of its data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from controllers.cloudpool.pool import READS
from hack.cloudpool.scene import Scene
from nodewright.gateways.cloudpool.watching import Watching

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def watching(stage: Scene, *staleness: float) -> Watching:
    found = Watching(stage.kube, READS, lambda: NOW)
    reflectors: Any = tuple(SimpleNamespace(staleness=each) for each in staleness)
    found._reflectors = reflectors
    return found


async def test_the_timestamp_is_that_of_the_oldest_data(stage: Scene) -> None:
    assert watching(stage, 1.0, 90.0, 0.0).as_of() == NOW - timedelta(seconds=90)


async def test_there_is_no_timestamp_before_all_was_read(stage: Scene) -> None:
    with pytest.raises(ValueError, match="read"):
        watching(stage, 1.0, float("inf")).as_of()
