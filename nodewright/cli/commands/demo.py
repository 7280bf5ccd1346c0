"""``nodewright demo``."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodewright.cli.exits import INTERRUPTED
from nodewright.cli.options import LogLevel, Verbosity

if TYPE_CHECKING:
    from nodewright.cli.demo.narrator import Narrator
    from nodewright.cli.embedded.session import Session

HELP = """Show the main job live: declare, scale, upgrade in place and by replacement, roll, delete.

It brings its own control plane. On a terminal it ends with a fresh cluster to play with, until Ctrl-C; otherwise it
prints plain lines and ends by itself. Exit code 0: everything went as it should; 1: something did not; 2: wrong usage;
130: stopped before the last act.
"""

DEFAULT_FOLDER = Path(".nodewright/demo")


def command(
    data_dir: Annotated[
        Path, typer.Option("--data-dir", metavar="DIR", help="Where state is kept; emptied of the demo's own objects.")
    ] = DEFAULT_FOLDER,
    keep: Annotated[
        bool | None, typer.Option("--keep/--no-keep", help="Leave a cluster to play with. [default: on a terminal]")
    ] = None,
    log_level: LogLevel = Verbosity.ERROR,
) -> None:
    from nodewright.runtime.telemetry.logs import configure  # noqa: PLC0415

    configure(level=log_level.value)
    asyncio.run(_show(data_dir.absolute(), sys.stdout.isatty() if keep is None else keep))


async def _show(folder: Path, keep: bool) -> None:
    from nodewright.cli.demo.narrator import LiveNarrator, PlainNarrator  # noqa: PLC0415
    from nodewright.cli.embedded.session import SessionOptions, session  # noqa: PLC0415
    from nodewright.runtime.signals import stop_on_signals  # noqa: PLC0415

    narrator: Narrator = LiveNarrator() if sys.stdout.isatty() else PlainNarrator()
    stop = asyncio.Event()
    stop_on_signals(stop)
    started = time.monotonic()
    try:
        async with session(SessionOptions(folder), stop) as running:
            narrator.say(f"A control plane at {running.url}, {time.monotonic() - started:.1f} s after its start.")
            narrator.say(f"Look over its shoulder: export KUBECONFIG={running.kubeconfig}")
            await _unless_stopped(_play(running, narrator, keep), stop)
            if keep:
                await running.until_stopped()
    finally:
        narrator.close()


async def _unless_stopped(play: Coroutine[Any, Any, None], stop: asyncio.Event) -> None:
    """Raises typer.Exit if ``stop`` comes before the end."""
    playing = asyncio.ensure_future(play)
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait({playing, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not playing.done():
        playing.cancel()
        await asyncio.wait({playing})
        raise typer.Exit(INTERRUPTED)
    await playing


async def _play(running: Session, narrator: Narrator, keep: bool) -> None:
    from nodewright.cli.cluster.access import client_of  # noqa: PLC0415
    from nodewright.cli.demo.stage import Stage  # noqa: PLC0415
    from nodewright.cli.demo.story import Cast, Story  # noqa: PLC0415
    from nodewright.cli.examples import write_example  # noqa: PLC0415
    from providers.simulated import WORLDS  # noqa: PLC0415

    example = write_example(running.kubeconfig.parent)
    async with client_of(running.connection) as client:
        stage = Stage(client, narrator.show)
        await stage.clear()
        story = Story(Cast(stage, narrator, example, lambda: sum(len(w.hosts()) for w in WORLDS.all.values())))
        await story.play()
        if not keep:
            return
        await story.declare()
    narrator.say(_invitation(running))


def _invitation(running: Session) -> str:
    return (
        f"\nYours to play with until Ctrl-C:\n  export KUBECONFIG={running.kubeconfig}\n"
        "  kubectl get machines -w\n  kubectl scale machinedeployment workers --replicas=10\n"
        "  nodewright describe cluster demo"
    )
