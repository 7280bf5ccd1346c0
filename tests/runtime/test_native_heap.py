"""Memory of what is gone goes back to the system."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

from nodewright.runtime.memory import native_heap

_SIZES = """
import os, sys
from pathlib import Path
from nodewright.runtime.memory.native_heap import give_large_blocks_back, trim

def rss():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 2**20

given = give_large_blocks_back()
b"x" * (30 * 2**20)  # glibc would raise its threshold to what is freed here
block = int(sys.argv[1])
before, kept, gone = rss(), [], []
for _ in range(40 * 2**20 // block):
    gone.append(b"x" * block)
    kept.append(b"y" * 600)  # what stays lies between what goes
grown = rss() - before
del gone
if block < 2**17:
    trim()
print(given, grown, rss() - before)
"""
glibc = pytest.mark.skipif(
    native_heap._function("mallopt") is None, reason="mallopt and malloc_trim are glibc's; run this on Linux with glibc"
)


def _sizes(block: int) -> tuple[bool, int, int]:
    """In a process of its own: MiB that it grew by and that are left after all blocks were freed."""
    inherited = {name: value for name, value in os.environ.items() if "MALLOC" not in name and name != "GLIBC_TUNABLES"}
    command = [sys.executable, "-c", _SIZES, str(block)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=inherited)
    given, grown, left = done.stdout.split()
    return given == "True", int(grown), int(left)


@glibc
@pytest.mark.parametrize("block", [2**20, 12 * 2**10], ids=["large", "small"])
def test_blocks_that_are_freed_between_others_go_back_to_the_system(block: int) -> None:
    given, grown, left = _sizes(block)
    assert given
    assert grown >= 35
    assert left < 20


@pytest.mark.parametrize(
    "environment",
    [{"MALLOC_MMAP_THRESHOLD_": "33554432"}, {"GLIBC_TUNABLES": "a=1:glibc.malloc.mmap_threshold=33554432"}],
)
def test_what_the_user_has_set_stays(environment: dict[str, str]) -> None:
    assert not native_heap.give_large_blocks_back(environment)


def test_a_c_library_without_them_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Library:
        def __init__(self, name: str | None) -> None:
            assert name is None

    native_heap._function.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(ctypes, "CDLL", Library)
        assert not native_heap.give_large_blocks_back({})
        assert not native_heap.trim()
    native_heap._function.cache_clear()
