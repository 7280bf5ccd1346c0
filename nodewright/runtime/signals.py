"""End in good order when asked to, and at once when asked again."""

from __future__ import annotations

import asyncio
import os
import signal
from types import FrameType

_ASKS = (signal.SIGTERM, signal.SIGINT)


def stop_on_signals(stop: asyncio.Event) -> None:
    """SIGTERM and Ctrl-C set ``stop``; a second one ends the process at once, for people in a hurry.

    Takes the place of handlers that others have set. To be called in the main thread.
    """
    loop = asyncio.get_running_loop()

    def first() -> None:
        stop.set()
        for number in _ASKS:
            loop.remove_signal_handler(number)
            signal.signal(number, _at_once)

    for number in _ASKS:
        loop.add_signal_handler(number, first)


def _at_once(number: int, _frame: FrameType | None) -> None:
    """Say so, and end by the signal as if no handler existed: the parent process sees that."""
    os.write(2, b"nodewright: ended at once, as asked twice; the next start goes on with what was begun\n")
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
