"""End in good order when asked to."""

from __future__ import annotations

import asyncio
import signal


def stop_on_signals(stop: asyncio.Event) -> None:
    """SIGTERM and Ctrl-C set ``stop``; a second one ends the process at once, for people in a hurry."""
    loop = asyncio.get_running_loop()

    def first() -> None:
        stop.set()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, first)
