"""``demo`` runs the main job by itself when nobody looks, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from nodewright.cli.demo.picture import MachineRow, Picture, changes


def test_it_plays_every_act_and_ends_with_nothing_left(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "nodewright.cli", "demo", "--data-dir", str(tmp_path / "demo")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    shown = done.stdout
    for act in range(1, 7):
        assert f"== {act}. " in shown
    assert shown.count("   $ kubectl ") == 6
    assert "3 Machines are 3 Ready Nodes" in shown
    assert "on the same host" in shown
    assert "a new host with" in shown
    assert "0 Machines, 0 Nodes, 0 hosts" in shown
    assert done.stderr == ""


def row(name: str, phase: str = "Running", *, ready: bool = True, host: str = "h", deleting: bool = False) -> MachineRow:
    return MachineRow(name, "web", phase, ready, "", f"node-{name}", "1.33.0", "1.33.0", host, deleting)


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
