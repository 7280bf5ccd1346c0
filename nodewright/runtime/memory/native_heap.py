"""Freed memory goes back to the system, where the C library is glibc.

Lists of thousands of objects come and go. glibc keeps what they took: it raises the size from which a block is mapped
by itself to the largest block freed so far, and gives back only what lies at the end of its heap. See mallopt(3) and
malloc_trim(3). With other C libraries (musl, macOS) nothing happens here.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from functools import cache

_M_MMAP_THRESHOLD = -3
"""The number of this parameter in glibc's malloc.h."""
_LARGE_BYTES = 128 * 1024
"""glibc's own default. It stays as it is once it was set."""


def give_large_blocks_back(environment: Mapping[str, str] = os.environ) -> bool:
    """Let blocks from 128 KiB on go back as soon as they are freed. False: not here, or the user has set it."""
    tunables = environment.get("GLIBC_TUNABLES", "")
    if "MALLOC_MMAP_THRESHOLD_" in environment or "glibc.malloc.mmap_threshold" in tunables:
        return False
    mallopt = _function("mallopt")
    return mallopt is not None and mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES) == 1


def trim() -> bool:
    """Give back the free whole pages of the heap: 0.5 to 5 ms for 300 MiB. False: there were none, or not here."""
    malloc_trim = _function("malloc_trim")
    return malloc_trim is not None and malloc_trim(0) == 1


@cache
def _function(name: str) -> Callable[..., int] | None:
    try:
        found: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return None
    return found
