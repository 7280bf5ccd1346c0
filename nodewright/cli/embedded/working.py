"""Do one piece of work beside a plane that lives as long as the work does."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from nodewright.cli.embedded.session import Session


async def work_in(running: Session, work: Coroutine[Any, Any, None]) -> bool:
    """True once ``work`` is done, False if it was cut short by ``stop``. Raises what ``work`` raises, and CliError if a
    part of the session ends by itself.
    """
    working = asyncio.ensure_future(work)
    serving = asyncio.ensure_future(running.until_stopped())
    try:
        await asyncio.wait({working, serving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working
            return True
        await serving
        return False
    finally:
        for task in (working, serving):
            task.cancel()
        await asyncio.gather(working, serving, return_exceptions=True)
