"""``demo`` runs the main job by itself when nobody looks, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from nodewright.cli.demo.narrator import machine_table
from nodewright.cli.demo.picture import MachineRow, Picture, changes


def test_it_plays_every_act_and_ends_with_nothing_left(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "nodewright.cli", "demo", "--data-dir", str(tmp_path / "demo")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    shown = done.stdout
    for act in range(1, 7):
        assert f"== {act}. " in shown
    assert shown.count("   $ kubectl ") == 6
    assert "3 Machines are 3 Ready Nodes" in shown
    assert "on the same host" in shown
    assert "a new host with" in shown
    assert "0 Machines, 0 Nodes, 0 hosts" in shown
    # Where the machine had no time for it for ten seconds, controllers have begun anew, and say so.
    assert [line for line in done.stderr.splitlines() if "could not be renewed within" not in line] == []


def test_an_interrupt_before_the_last_act_ends_with_130(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "nodewright.cli", "demo", "--data-dir", str(tmp_path / "demo")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        while "== 1. " not in (line := demo.stdout.readline()):
            assert line, "it ended before the first act"
        demo.send_signal(signal.SIGINT)
        _, error = demo.communicate(timeout=300)
    assert demo.returncode == 130, error
    assert "Traceback" not in error


@pytest.mark.slow
def test_on_a_terminal_it_leaves_a_cluster_to_play_with_until_ctrl_c(tmp_path: Path) -> None:
    process, terminal = pty.fork()
    if process == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS="140")
        os.execv(sys.executable, [sys.executable, "-m", "nodewright.cli", "demo", "--data-dir", str(tmp_path / "demo")])
    shown = b""
    while b"describe cluster demo" not in shown:
        shown += os.read(terminal, 65536)
    assert b"\x1b[" in shown
    assert "✔ 3 Machines are 3 Ready Nodes".encode() in re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", shown)
    os.write(terminal, b"\x03")
    with contextlib.suppress(OSError):  # how a terminal says that its last writer has gone
        while os.read(terminal, 65536):
            pass
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0


def row(name: str, phase: str = "Running", *, ready: bool = True, host: str = "h") -> MachineRow:
    return MachineRow(name, "web", phase, ready, "", f"node-{name}", "1.33.0", "1.33.0", host, deleting=False)


def test_changes_are_told_once_and_in_words() -> None:
    before = Picture(machines=(row("a", "Provisioning", ready=False), row("b")), nodes=("node-b",))
    after = Picture(machines=(row("a"), row("c", "Pending", ready=False)))
    assert list(changes(before, after)) == [
        "Machine a: Ready, Node node-a runs kubelet 1.33.0",
        "Machine c is there: Pending",
        "Machine b is gone",
        "Node node-b is gone",
    ]
    assert list(changes(after, after)) == []


def test_a_replaced_host_is_told() -> None:
    before, after = Picture(machines=(row("a", host="h1"),)), Picture(machines=(row("a", host="h2"),))
    assert list(changes(before, after)) == ["Machine a: new host h2"]


def test_a_machine_counts_as_ready_only_with_the_kubelet_it_asks_for() -> None:
    behind = MachineRow("a", "", "Updating", True, "", "n", "1.33.0", "1.34.0", "h", False)
    assert behind.state == "Updating"
    assert Picture(machines=(behind,)).ready == 0


@pytest.mark.parametrize("width", [80, 160])
def test_the_live_table_cuts_no_name_and_leaves_out_nodes_where_it_is_narrow(width: int) -> None:
    name, host = "workers-2fnw64cj-5gndt-0", "simulated://default/sim-000017"
    going = MachineRow(name, "workers-2fnw64cj", "Running", False, "Draining", name, "1.32.4", "1.33.0", host, True)
    out = Console(file=StringIO(), width=width)
    out.print(machine_table((going,), out.width))
    shown = out.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in shown
    assert "1.32.4 → 1.33.0" in shown
    assert "sim-000017" in shown
    assert shown.count(name) == (1 if width == 80 else 2)
