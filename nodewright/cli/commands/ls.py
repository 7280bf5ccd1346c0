"""``nodewright ls``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodewright.cli.structured import Output, OutputOption, show

if TYPE_CHECKING:
    from nodewright.cli.embedded.planes import Plane

HELP = """List the embedded control planes of this machine: those that you run, and stopped ones in ./.nodewright.

Exit code 0: listed, though there may be none; 2: wrong usage.
"""


def command(output: OutputOption = Output.TEXT) -> None:
    from nodewright.cli.embedded.planes import planes  # noqa: PLC0415

    found = planes(Path.cwd())
    if output is Output.TEXT:
        _print(found)
    else:
        show({"planes": [_value(plane) for plane in found]}, output)


def _value(plane: Plane) -> dict[str, Any]:
    from controllers.kernel.conditions import format_time  # noqa: PLC0415

    value = {
        "folder": str(plane.folder),
        "state": "running" if plane.process else "stopped",
        "process": plane.process,
        "server": plane.url,
        "kubeconfig": str(plane.kubeconfig or ""),
        "since": format_time(plane.since) if plane.since is not None else "",
    }
    return {name: each for name, each in value.items() if each}


def _print(found: list[Plane]) -> None:
    from rich.text import Text  # noqa: PLC0415

    from nodewright.cli.screen import console, say  # noqa: PLC0415
    from nodewright.reports.columns import aligned  # noqa: PLC0415
    from nodewright.reports.tree.drawing import age  # noqa: PLC0415

    if not found:
        say("no control plane is running here; `nodewright up` starts one")
        return
    rows = [[Text(title, "bold") for title in ("STATE", "PROCESS", "SERVER", "SINCE", "FOLDER")]]
    now = datetime.now(UTC)
    for plane in found:
        state, style = ("running", "green") if plane.process else ("stopped", "dim")
        process = str(plane.process or "-")
        rest = (process, plane.url or "-", age(plane.since, now) or "-", str(plane.folder))
        rows.append([Text(state, style), *map(Text, rest)])
    out = console()
    for line in aligned(rows):
        out.print(line, soft_wrap=True)
