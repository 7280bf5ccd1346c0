"""Run the tests again and again in random order, beside a load on every core, and print what failed with its seed.

    python -m hack.deflake [--runs N] [--quiet N] [--workers N] [-- pytest's arguments]

The last ``--quiet`` runs of ``--runs`` have no load beside them. Exit code 1 if any run failed. The order is
pytest-randomly's: the line that is printed with a failure repeats it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+(?: \S+)*?)(?: - .*)?$", re.MULTILINE)
_LARGEST_SEED = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Run:
    """``failed``: node ids; a run that fails as a whole has the last lines of its output instead."""

    seed: int
    loaded: bool
    seconds: float
    code: int
    failed: tuple[str, ...]


def failures(output: str) -> tuple[str, ...]:
    """Node ids of pytest's short summary, each once."""
    return tuple(dict.fromkeys(_FAILED.findall(output)))


def command(seed: int, workers: int, arguments: list[str]) -> list[str]:
    chosen = arguments or ["-m", "not slow and not e2e"]
    many = ["-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder"] if workers > 1 else []
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--randomly-seed={seed}", *many, *chosen]


def _spin() -> None:
    while True:
        sum(range(10_000))


@contextmanager
def load(wanted: bool) -> Iterator[None]:
    """One busy process for each core."""
    spinning = [
        multiprocessing.Process(target=_spin, daemon=True) for _ in range((os.cpu_count() or 1) if wanted else 0)
    ]
    for process in spinning:
        process.start()
    try:
        yield
    finally:
        for process in spinning:
            process.terminate()
            process.join()


def once(seed: int, loaded: bool, workers: int, arguments: list[str]) -> Run:
    began = time.monotonic()
    with load(loaded):
        done = subprocess.run(command(seed, workers, arguments), capture_output=True, text=True, check=False)
    found = failures(done.stdout)
    if done.returncode and not found:
        found = (" | ".join((done.stdout + done.stderr).strip().splitlines()[-5:]),)
    return Run(seed, loaded, time.monotonic() - began, done.returncode, found)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m hack.deflake", description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10, metavar="N")
    parser.add_argument("--quiet", type=int, default=0, metavar="N", help="so many of them without a load")
    parser.add_argument("--workers", type=int, default=2, metavar="N")
    parser.add_argument("--seed", type=int, default=None, help="of the first run; the next ones count up")
    parser.add_argument("arguments", nargs="*", metavar="pytest's arguments", help="after --")
    given = parser.parse_args(argv)
    first = random.SystemRandom().randrange(_LARGEST_SEED) if given.seed is None else given.seed
    often: Counter[str] = Counter()
    broken = 0
    for number in range(given.runs):
        seed = (first + number) % _LARGEST_SEED
        run = once(seed, number < given.runs - given.quiet, given.workers, given.arguments)
        often.update(run.failed)
        broken += run.code != 0
        how = "under load" if run.loaded else "alone"
        said = f"{len(run.failed)} failed" if run.code else "passed"
        print(f"run {number + 1} of {given.runs}, {how}, seed {seed}: {said} in {run.seconds:.0f} s", flush=True)
        for test in run.failed:
            print(f"  {test}", flush=True)
        if run.code:
            print(f"  again: {' '.join(command(seed, given.workers, given.arguments)[1:])}", flush=True)
    print(f"{broken} of {given.runs} runs failed")
    for test, times in often.most_common():
        print(f"{times:4} x {test}")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
