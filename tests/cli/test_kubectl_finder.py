"""``hack.kubectl`` finds a kubectl or says how to get one."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack import binaries, kubectl


@pytest.fixture
def nothing_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No kubectl anywhere, and no Go to build one."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBECTL", raising=False)
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return tmp_path


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_one_on_path_is_taken(nothing_there: Path) -> None:
    assert kubectl.find() is None
    executable(nothing_there / "kubectl")
    assert kubectl.find() == nothing_there / "kubectl"


def test_the_one_that_is_named_comes_first(nothing_there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable(nothing_there / "kubectl")
    mine = executable(nothing_there / "own" / "kubectl-1.30")
    monkeypatch.setenv("KUBECTL", str(mine))
    assert kubectl.find() == mine


def test_a_name_that_cannot_be_run_is_an_error_and_not_passed_over(
    nothing_there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable(nothing_there / "kubectl")
    monkeypatch.setenv("KUBECTL", "/no/such/kubectl")
    with pytest.raises(kubectl.NoKubectl, match="/no/such/kubectl"):
        kubectl.find()


def test_one_that_was_built_before_is_found_in_the_cache(nothing_there: Path) -> None:
    built = executable(binaries.cache_folder() / "kubectl")
    assert kubectl.find() == built


@pytest.mark.usefixtures("nothing_there")
def test_without_any_it_says_how_to_get_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert kubectl.main([]) == 1
    said = capsys.readouterr().err
    assert "kubernetes-client" in said
    assert "Go" in said
    assert kubectl.main(["--no-build"]) == 1
