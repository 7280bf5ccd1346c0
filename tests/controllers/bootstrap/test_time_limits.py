"""Each step of the script has a limit: it ends what the step has started, and says after how many seconds."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from controllers.bootstrap import shell
from controllers.bootstrap.failure import TIMED_OUT
from controllers.bootstrap.steps import (
    Action,
    Archive,
    Binary,
    Command,
    Download,
    Packages,
    Present,
    Script,
    Service,
    Step,
    Steps,
)
from tests.controllers.bootstrap.test_renderers import run

DIGEST = "0" * 64


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/file"


def program(folder: Path, name: str) -> None:
    """One that never ends, and does not heed being asked to, in the place of a program of the host."""
    file = folder / name
    file.write_text("#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 0.1; done\n")
    file.chmod(0o755)


def limited(action: Action, folder: Path, programs: Path | None = None) -> subprocess.CompletedProcess[str]:
    text = shell.render(Steps((Step("wait for ever", action, timeout=1.0),)))
    text = re.sub(r"(timeout -k) \d+", r"\1 1", text)
    if programs is not None:
        text = text.replace("PATH=/usr", f"PATH={programs}:/usr")
    return run(text, folder)


def assert_late(done: subprocess.CompletedProcess[str], folder: Path) -> None:
    assert done.returncode == TIMED_OUT, done.stdout
    assert "it did not end within 1 s" in (folder / "log").read_text()
    assert f'"code": {TIMED_OUT}' in (folder / "result").read_text()


@pytest.mark.parametrize("kind", ["binary", "binary without a checksum", "download", "archive"])
def test_a_server_that_does_not_answer_costs_no_more_than_the_step_may(kind: str, silent: str, tmp_path: Path) -> None:
    target = str(tmp_path / "target")
    actions: dict[str, Action] = {
        "binary": Binary(target, silent, "1.2.3", f"{target} --version", DIGEST),
        "binary without a checksum": Binary(target, silent, "1.2.3", f"{target} --version"),
        "download": Download(target, silent, DIGEST),
        "archive": Archive(target, silent, DIGEST),
    }
    done = limited(actions[kind], tmp_path)
    assert_late(done, tmp_path)
    assert f"{silent} can't be fetched" in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    ("name", "action"),
    [
        ("forever", Command(("forever",))),
        ("forever", Script("forever")),
        ("forever", Present("/bin/sh", "forever")),
        ("systemctl", Service("containerd.service")),
        ("systemctl", Service("containerd.service", restart=True)),
        ("apt-get", Packages((("kubelet", "1.36.9"),))),
    ],
    ids=["command", "script", "present", "service", "restart", "packages"],
)
def test_a_program_that_does_not_end_is_killed_with_its_step(name: str, action: Action, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    program(programs, name)
    state = tmp_path / "state"
    state.mkdir()
    assert_late(limited(action, state, programs), state)


@pytest.mark.parametrize("kind", ["command", "command with a variable", "script"])
def test_what_a_program_has_started_is_killed_too_when_it_does_not_heed_sigterm(kind: str, tmp_path: Path) -> None:
    """The program itself ends at SIGTERM. What it has started holds a lock for as long as it runs."""
    lock, goes_on = tmp_path / "lock", tmp_path / "goes-on"
    goes_on.touch()
    given = '[ "$GIVEN" = "a b" ] || exit 3' if kind == "command with a variable" else ":"
    text = f"exec 9> {lock}; flock 9\n(trap '' TERM; while [ -e {goes_on} ]; do sleep 0.1; done) &\n{given}\nwait\n"
    actions: dict[str, Action] = {
        "command": Command(("sh", "-c", text)),
        "command with a variable": Command(("sh", "-c", text), (("GIVEN", "a b"),)),
        "script": Script(text),
    }
    state = tmp_path / "state"
    state.mkdir()
    try:
        assert_late(limited(actions[kind], state), state)
        assert subprocess.run(["flock", "-w", "20", lock, "true"], check=False).returncode == 0
    finally:
        goes_on.unlink()


def test_an_address_that_swallows_packets_is_given_up_long_before_the_step_is() -> None:
    """10 s for a connection, and no other try after 30 s: 3 x 10 + 2 x 2 = 34 s, where the step may take 900."""
    text = shell.render(Steps(()))
    assert "--connect-timeout 10 " in text
    assert "--retry-max-time 30 " in text


def test_a_step_that_fails_in_its_time_keeps_its_own_code(tmp_path: Path) -> None:
    assert run(shell.render(Steps((Step("fail", Command(("false",))),))), tmp_path).returncode == 1
    assert "did not end" not in (tmp_path / "log").read_text()
