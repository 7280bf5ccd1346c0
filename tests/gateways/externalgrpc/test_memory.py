"""Garbage collections of the gateway: no call waits for one that looks through the cache."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from nodewright.gateways.externalgrpc.memory import settle


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def test_after_settling_only_new_objects_are_looked_through() -> None:
    held = [{"machine": [number]} for number in range(1000)]
    settle()
    seen: set[int] = set()

    def note(phase: str, info: dict[str, int]) -> None:
        seen.add(info["generation"])

    gc.callbacks.append(note)
    try:
        held += [{"machine": [number]} for number in range(100_000)]  # all of them outlive the young generation
    finally:
        gc.callbacks.remove(note)
    assert seen == {0}
    assert gc.get_freeze_count() > len(held) / 1000
