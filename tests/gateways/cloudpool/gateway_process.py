"""A gateway as a process of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest


@asynccontextmanager
async def running(*arguments: str) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    """The URL that it names when it is ready."""
    command = [sys.executable, "-m", "nodewright.cli", "gateway", *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(300.0):
            async for line in process.stdout:
                if line.startswith(b"ready: serving at "):
                    yield line.decode().split()[-1], process
                    return
        pytest.fail("it ended before it was ready")
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
