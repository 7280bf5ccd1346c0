"""``nodewright ls``: planes are found by the locks that their processes hold."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from nodewright.cli.embedded.folder import LOCK, held, remember_port
from nodewright.cli.embedded.planes import HOME, planes
from nodewright.cli.main import run


def a_folder(path: Path, number: int | str, port: int = 6443) -> Path:
    path.mkdir(parents=True)
    (path / LOCK).write_text(str(number))
    if port:
        remember_port(path, port)
    return path


def a_process(proc: Path, number: int, *files: Path) -> None:
    (proc / str(number) / "fd").mkdir(parents=True)
    for at, file in enumerate(files):
        (proc / str(number) / "fd" / str(at)).symlink_to(file)


def test_a_running_plane_is_the_one_whose_number_stands_in_the_lock(tmp_path: Path) -> None:
    mine, theirs, old = (a_folder(tmp_path / name, number) for name, number in (("a", 11), ("b", "x"), ("c", 99)))
    another = a_folder(tmp_path / "d", 12, port=0)
    proc = tmp_path / "proc"
    a_process(proc, 11, tmp_path / "socket", mine / LOCK)
    a_process(proc, 12, theirs / LOCK, old / LOCK, another / LOCK, tmp_path / "gone" / LOCK)
    (proc / "self").mkdir()
    (proc / "13").mkdir()
    (found,) = planes(tmp_path / "elsewhere", proc)
    assert (found.folder, found.process, found.url) == (mine, 11, "https://127.0.0.1:6443")
    assert found.kubeconfig is None
    assert found.since is not None


def test_stopped_planes_of_the_usual_folder_are_listed_too(tmp_path: Path) -> None:
    up, demo = (a_folder(tmp_path / HOME / name, 11) for name in ("up", "demo"))
    (up / "kubeconfig").touch()
    a_folder(tmp_path / HOME / "of-others", 11, port=0)
    proc = tmp_path / "proc"
    a_process(proc, 11, demo / LOCK)
    first, second = planes(tmp_path, proc)
    assert (first.folder, first.process) == (demo, 11)
    assert (second.folder, second.process, second.kubeconfig) == (up, 0, up / "kubeconfig")


def test_the_command_lists_what_this_machine_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    a_folder(tmp_path / HOME / "up", 1)
    with held(tmp_path / "plane"):
        remember_port(tmp_path / "plane", 16443)
        assert run(["ls", "-o", "json"]) == 0
        found = {each["folder"]: each for each in json.loads(capsys.readouterr().out)["planes"]}
        assert run(["ls"]) == 0
        shown = capsys.readouterr().out.splitlines()
    assert found[str(tmp_path / "plane")]["process"] == os.getpid()
    assert found[str(tmp_path / "plane")]["server"] == "https://127.0.0.1:16443"
    assert found[str(tmp_path / HOME / "up")]["state"] == "stopped"
    assert shown[0].split() == ["STATE", "PROCESS", "SERVER", "SINCE", "FOLDER"]
    assert any(line.split()[:2] == ["running", str(os.getpid())] for line in shown)


def test_behind_up_it_is_the_same_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    a_folder(tmp_path / HOME / "up", 1)
    assert run(["up", "ls", "-o", "json"]) == 0
    assert str(tmp_path / HOME / "up") in capsys.readouterr().out
    assert run(["up", "down"]) == 0
    assert "no control plane is running" in capsys.readouterr().out
