"""Many seeds at once, as a table: how often it went right, what luck it met, and the story of what went wrong."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from nodewright.crds import load_crds
from nodewright.runtime.settings.wiring import reconcilers
from nodewright.sim.engine import Engine, Result, Scenario


@dataclass(frozen=True, slots=True)
class Options:
    """Which seeds to run. ``workers`` 0: one per core."""

    seeds: int = 1000
    first_seed: int = 0
    workers: int = 0
    scenario: Scenario = field(default_factory=Scenario)


@dataclass(frozen=True, slots=True)
class Summary:
    results: int
    failed: tuple[Result, ...]
    steps: int
    crashes: int
    virtual_seconds: float
    writes: Counter[str]
    seconds: float

    def rows(self) -> list[tuple[str, str]]:
        """What a table shows, first the verdict."""
        hours = self.virtual_seconds / 3600
        return [
            ("schedules run", f"{self.results}"),
            ("schedules with a breach", f"{len(self.failed)}"),
            ("steps checked", f"{self.steps:,}"),
            ("crashes between two actions", f"{self.crashes:,}"),
            ("virtual hours", f"{hours:,.1f}"),
            ("writes by the controllers", f"{self.writes.total():,}"),
            ("seconds", f"{self.seconds:.1f}"),
        ]


def run_seed(seed: int, scenario: Scenario) -> Result:
    """One schedule from beginning to end."""
    return Engine(seed, scenario, reconcilers(), load_crds()).run()


def run(options: Options, progress: Callable[[int, Result], None] = lambda _done, _result: None) -> Summary:
    """Run all seeds; ``progress`` is called after each."""
    started = time.monotonic()
    failed: list[Result] = []
    steps = crashes = done = 0
    virtual, writes = 0.0, Counter[str]()
    for result in _results(options):
        done += 1
        steps, crashes, virtual = steps + result.steps, crashes + result.crashes, virtual + result.virtual_seconds
        writes.update(result.writes)
        if result.breach:
            failed.append(result)
        progress(done, result)
    return Summary(done, tuple(failed), steps, crashes, virtual, writes, time.monotonic() - started)


def _results(options: Options) -> Iterator[Result]:
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    workers = min(options.workers or os.cpu_count() or 1, options.seeds)
    if workers <= 1:
        yield from (run_seed(seed, options.scenario) for seed in seeds)
        return
    # A fresh interpreter per worker: forking a process that runs threads or an event loop is not safe.
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        yield from pool.imap_unordered(_run_packed, ((seed, options.scenario) for seed in seeds), chunksize=4)


def _run_packed(packed: tuple[int, Scenario]) -> Result:
    return run_seed(*packed)
