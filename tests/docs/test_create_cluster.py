"""The commands of docs/tasks/create-cluster.md that need no machines, run as a person would type them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "tasks" / "create-cluster.md"
SECONDS = 600


def runnable() -> list[str]:
    marked = [block for block in blocks(PAGE) if "runnable" in block.info.split()]
    lines = [line for block in marked for line in block.text.splitlines()]
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Has the files of the page, and the program under its name."""
    for block in blocks(PAGE):
        if block.file:
            (tmp_path / block.file).write_text(block.text)
    program = tmp_path / "nodewright"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nodewright.cli "$@"\n')
    program.chmod(0o700)
    return tmp_path


def test_the_page_has_such_commands() -> None:
    assert {command.split()[1] for command in runnable() if command.startswith("nodewright ")} == {
        "generate", "validate", "create", "delete",
    }  # fmt: skip


@pytest.mark.e2e
def test_every_command_that_needs_no_machines_works(folder: Path) -> None:
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    for command in runnable():
        done = subprocess.run(
            command,
            shell=True,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
