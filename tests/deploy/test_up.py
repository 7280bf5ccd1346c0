"""deploy/up: the units are what systemd takes, confined, and start what the program knows; the container likewise."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from nodewright.cli.main import build_app

FOLDER = Path(__file__).parents[2] / "deploy" / "up"
SERVICES = sorted(FOLDER.glob("*.service"))
UNITS = [*SERVICES, *sorted(FOLDER.glob("*.timer"))]


def settings(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        if line and line[0] not in "#[":
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


def options_of(words: list[str]) -> list[str]:
    """Options of a command line of ours that the command does not have."""
    import typer  # noqa: PLC0415

    command = typer.main.get_command(build_app([words[0]])).commands[words[0]]  # type: ignore[attr-defined]
    known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    return [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_a_service_starts_what_the_program_knows(path: Path) -> None:
    (line,) = settings(path)["ExecStart"]
    program, *words = shlex.split(line)
    assert Path(program).name == "nodewright"
    assert options_of(words) == []


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_a_service_is_a_user_of_its_own_that_may_write_its_folder_alone(path: Path) -> None:
    found = settings(path)
    assert found["User"] == ["nodewright"]
    for name, value in (
        ("NoNewPrivileges", "yes"), ("ProtectSystem", "strict"), ("ProtectHome", "yes"), ("PrivateTmp", "yes"),
        ("PrivateDevices", "yes"), ("UMask", "0077"), ("StateDirectoryMode", "0700"), ("CapabilityBoundingSet", ""),
    ):  # fmt: skip
        assert found[name] == [value], name
    assert "ReadWritePaths" not in found
    data = shlex.split(found["ExecStart"][0])
    assert data[data.index("--data-dir") + 1].startswith(f"/var/lib/{found['StateDirectory'][0].split()[0]}/")


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_takes_it(path: Path, tmp_path: Path) -> None:
    """The program and the user are named that this machine has: all else is as it is."""
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd-analyze not found: install the package systemd")
    for unit in UNITS:
        text = unit.read_text().replace("/opt/nodewright/bin/nodewright", "/bin/true")
        (tmp_path / unit.name).write_text(re.sub(r"(?m)^(User|Group)=.*$", r"\1=root", text))
    done = subprocess.run(
        [verify, "verify", "--man=no", "--recursive-errors=no", str(tmp_path / path.name)],
        capture_output=True, text=True, check=False, timeout=180,
    )  # fmt: skip
    said = [line for line in (done.stdout + done.stderr).splitlines() if path.name in line]
    assert said == [], said
    assert done.returncode == 0, done.stdout + done.stderr


def container_line(tmp_path: Path, *arguments: str) -> list[str]:
    """What the engine is started with."""
    engine = tmp_path / "engine"
    engine.write_text('#!/bin/sh\nfor word in "$@"; do printf "%s\\n" "$word"; done\n')
    engine.chmod(0o755)
    me = f"{os.getuid()}:{os.getgid()}"
    environment = {**os.environ, "ENGINE": str(engine), "CONTAINER_USER": me}
    done = subprocess.run(
        [str(FOLDER / "container.sh"), *arguments],
        capture_output=True, text=True, check=True, env=environment, timeout=180,
    )  # fmt: skip
    return done.stdout.splitlines()


def test_the_container_starts_what_the_program_knows_and_is_confined(tmp_path: Path) -> None:
    words = container_line(tmp_path, "nodewright:test", str(tmp_path / "state"))
    at = words.index("nodewright:test")
    assert options_of(words[at + 1 :]) == []
    engine = words[:at]
    assert {"--read-only", "no-new-privileges"} <= set(engine)
    assert engine[engine.index("--cap-drop") + 1] == "ALL"
    assert engine[engine.index("--network") + 1] == "host"
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


def test_the_container_needs_an_image(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        container_line(tmp_path)
    assert "usage" in failed.value.stderr
