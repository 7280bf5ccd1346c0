"""The commands of docs/tasks/first-cluster.md, run as a person would type them, with the output that the page shows."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hack.program import Up
from tests.docs.pages import ROOT, Block, blocks

pytestmark = pytest.mark.e2e

PAGE = ROOT / "docs" / "tasks" / "first-cluster.md"
SECONDS = 600


@dataclass(frozen=True, slots=True)
class Command:
    """A line after ``$`` and the lines that the page shows as its output; () means: not shown."""

    line: str
    shown: tuple[str, ...]


def commands(block: Block) -> Iterator[Command]:
    line, shown = "", list[str]()
    for text in block.text.splitlines():
        if text.startswith("$ "):
            if line:
                yield Command(line, tuple(shown))
            line, shown = text.removeprefix("$ "), []
        elif text.strip():
            shown.append(text)
    if line:
        yield Command(line, tuple(shown))


def runnable() -> list[Command]:
    marked = [block for block in blocks(PAGE) if "runnable" in block.info.split()]
    return [command for block in marked for command in commands(block)]


@pytest.fixture
def up(tmp_path: Path, kubectl_binary: Path) -> Iterator[Up]:
    with Up(tmp_path, kubectl_binary, "--in-memory") as running:
        yield running


def test_the_page_has_commands_of_both_programs() -> None:
    assert {command.line.split()[0] for command in runnable()} == {"kubectl", "nodewright"}


def test_every_command_of_the_first_cluster_does_what_the_page_says(up: Up) -> None:
    for command in runnable():
        done = _run(up, command.line)
        assert done.returncode == 0, f"$ {command.line}\n{done.stdout}{done.stderr}"
        said = (done.stdout + done.stderr).splitlines()
        for line in command.shown:
            assert line in said, f"$ {command.line}\nshould say: {line}\nsaid: {said}"
    assert up.kubectl.items("machines") == []
    assert up.kubectl.items("nodes") == []


def _run(up: Up, line: str) -> subprocess.CompletedProcess[str]:
    program, *arguments = shlex.split(line)
    programs = {
        "kubectl": [str(up.kubectl.binary), f"--cache-dir={up.kubectl.cache}"],
        "nodewright": [sys.executable, "-m", "nodewright.cli"],
    }
    return subprocess.run(
        [*programs[program], *arguments],
        cwd=ROOT,
        env={**os.environ, "KUBECONFIG": str(up.kubeconfig)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
