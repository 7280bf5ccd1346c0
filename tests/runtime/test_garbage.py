"""When the process looks for garbage: by itself in what is young, and in all else in a turn of its own."""

from __future__ import annotations

import gc

from nodewright.runtime.memory import garbage


def test_python_begins_no_collection_of_old_objects_by_itself() -> None:
    thresholds = gc.get_threshold()
    try:
        garbage.young_only()
        assert gc.get_threshold()[2] > 1_000_000
    finally:
        gc.set_threshold(*thresholds)


def test_what_takes_long_is_done_sooner_the_next_time() -> None:
    assert garbage.interval(100.0, garbage.LONG_SECONDS * 2) == 50.0
    assert garbage.interval(100.0, 0.0) == 200.0
    assert garbage.interval(garbage.SHORTEST, 1.0) == garbage.SHORTEST
    assert garbage.interval(garbage.LONGEST, 0.0) == garbage.LONGEST


def test_cycles_that_are_garbage_go() -> None:
    class Held:
        pass

    gone: list[str] = []
    held = Held()
    held.itself = held  # type: ignore[attr-defined]
    held.__class__.__del__ = lambda _self: gone.append("gone")  # type: ignore[attr-defined]
    del held
    try:
        garbage.settle()
        assert gone == ["gone"]
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
