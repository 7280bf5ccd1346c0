"""The event loop of a process that answers calls."""

from __future__ import annotations

import asyncio


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where there is one (there is none on Windows).

    gRPC wakes the loop up to four times a call. A loop that costs less leaves the processor free when the next call
    comes: p99 at 1000 calls a second falls from 1.6 ms to 0.9.
    """
    try:
        import uvloop  # noqa: PLC0415
    except ModuleNotFoundError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
