"""Tells the demo: a live table on a terminal, plain lines with times otherwise."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Protocol

from nodewright.cli.demo.picture import MachineRow, Picture, changes
from nodewright.cli.screen import console, say
from nodewright.reports.columns import GAP, widths_of

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

_STYLES = {"Ready": "green", "Deleting": "red", "Failed": "bold red"}


class Narrator(Protocol):
    def act(self, number: int, title: str, command: str) -> None:
        """A new act begins; ``command`` is what a person would type for it."""

    def show(self, picture: Picture) -> None:
        """This is how things look now."""

    def done(self, what: str) -> None:
        """The act has ended well."""

    def say(self, text: str) -> None: ...

    def close(self) -> None: ...


class PlainNarrator:
    """For pipes, logs and CI: one line per thing that happened."""

    def __init__(self) -> None:
        self._before = Picture()
        self._started = time.monotonic()

    def act(self, number: int, title: str, command: str) -> None:
        self.say(f"\n== {number}. {title}\n   $ {command}")
        self._started = time.monotonic()

    def show(self, picture: Picture) -> None:
        for line in changes(self._before, picture):
            self.say(f"   {time.monotonic() - self._started:6.2f}s  {line}")
        self._before = picture

    def done(self, what: str) -> None:
        self.say(f"   => {what}")

    def say(self, text: str) -> None:
        say(text)

    def close(self) -> None:
        """Nothing is open."""


class LiveNarrator:
    """For people: the Machines as a table that changes in place, act after act."""

    def __init__(self) -> None:
        self._console = console(sys.stdout)
        self._live: object | None = None
        self._started = time.monotonic()
        self._picture = Picture()

    def act(self, number: int, title: str, command: str) -> None:
        from rich.live import Live  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        self.close()
        self._console.print()
        self._console.rule(Text(f"{number}. {title}", "bold cyan"), align="left")
        self._console.print(Text("$ ", "dim").append(command, "bold"))
        self._started = time.monotonic()
        live = Live(console=self._console, refresh_per_second=15, transient=False, get_renderable=self._drawn)
        live.start()
        self._live = live

    def show(self, picture: Picture) -> None:
        self._picture = picture

    def done(self, what: str) -> None:
        self.close()
        self._console.print(f"[green]✔[/green] {what}")

    def say(self, text: str) -> None:
        self.close()
        self._console.print(text, markup=False)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()  # type: ignore[attr-defined]
            self._live = None

    def _drawn(self) -> Group:
        from rich.console import Group  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        parts = [
            Text(
                f"MachineDeployment {d.name}: {d.ready}/{d.replicas} ready, {d.updated} of the current template",
                "dim",
            )
            for d in self._picture.deployments
        ]
        clock = Text(f"{time.monotonic() - self._started:5.1f} s", "dim")
        return Group(*parts, machine_table(self._picture.machines, self._console.width), clock)


def _grouped(machines: tuple[MachineRow, ...]) -> list[tuple[Text, ...]]:
    """A row for each Machine; before those of a MachineSet, one that names it."""
    from rich.text import Text  # noqa: PLC0415

    owner: str | None = None
    rows: list[tuple[Text, ...]] = []
    for machine in machines:
        if machine.owner != owner:
            owner = machine.owner
            rows.append((Text(f"MachineSet {owner}" if owner else "on its own", "dim"),))
        rows.append(_cells(machine))
    return rows


def machine_table(machines: tuple[MachineRow, ...], width: int) -> Table:
    """The Machines, grouped by their MachineSet. A narrow terminal leaves Nodes out: they are named as Machines."""
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    rows = _grouped(machines)
    titles = ["MACHINE", "STATE", "KUBELET", "HOST", "NODE"]
    if sum(widths_of([*rows, [Text(title) for title in titles]])) + GAP * len(titles) > width:
        titles.remove("NODE")
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, GAP, 0, 0))
    for title in titles:
        table.add_column(title, no_wrap=True)
    for row in rows:
        table.add_row(*row[: len(titles)])
    return table


def _cells(machine: MachineRow) -> tuple[Text, ...]:
    from rich.text import Text  # noqa: PLC0415

    kubelet = machine.kubelet
    if kubelet and kubelet != machine.wants:
        kubelet = f"{kubelet} → {machine.wants}"
    style = _STYLES.get(machine.state, "yellow")
    state = Text(machine.state, style)
    if machine.reason and machine.reason != machine.state:
        state.append(f" {machine.reason}", "dim")
    host = machine.host.rpartition("/")[2]
    return Text(f"  {machine.name}"), state, Text(kubelet), Text(host, "dim"), Text(machine.node)
