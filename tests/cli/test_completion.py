"""What Tab offers: kinds, and the names that the cluster has; nothing where there is no answer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from hack.program import Kubectl, Up
from nodewright.cli import completing
from tests.cli.processes import EXAMPLE, nodewright

KUBECTL_COMPLETION = "from nodewright.cli.kubectl_completion import main; main()"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path) -> Iterator[Kubectl]:
    with Up(tmp_path_factory.mktemp("tab"), kubectl_binary, "--in-memory", "--no-controllers") as running:
        running.kubectl("apply", "-f", str(EXAMPLE))
        running.kubectl("create", "namespace", "shop")
        yield running.kubectl


def offered(typed: list[str], kubeconfig: Path) -> list[str]:
    """``typed``: the words behind the program's name; the last one is unfinished."""
    environment = {
        "COMP_WORDS": " ".join(["nodewright", *typed]),
        "COMP_CWORD": str(len(typed)),
        "_NODEWRIGHT_COMPLETE": "complete_bash",
        "KUBECONFIG": str(kubeconfig),
    }
    done = subprocess.run(
        [sys.executable, "-m", "nodewright.cli"],
        capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("describe machines", ["machineset"]),
        ("describe md ", ["workers"]),
        ("describe md/", ["md/workers"]),
        ("describe -n shop md ", []),
        ("describe nonsense ", []),
        ("describe cl --namespace sh", ["shop"]),
        ("status --context ", ["nodewright"]),
        ("rollout status ", ["workers"]),
        ("rollout status md ", ["workers"]),
        ("rollout undo machinedeployment/w", ["machinedeployment/workers"]),
        ("rollout status ms/", []),
        ("autoscaler explain md w", ["workers"]),
        ("explain provider sim", ["simulated"]),
        ("completion ", ["bash", "zsh", "fish"]),
    ],
)
def test_names_of_the_cluster_complete(plane: Kubectl, typed: str, found: list[str]) -> None:
    assert offered(typed.split(" "), plane.kubeconfig) == found


def test_kubectl_gets_names_and_its_directive(plane: Kubectl) -> None:
    def of(*words: str) -> list[str]:
        environment = {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
        command = [sys.executable, "-c", KUBECTL_COMPLETION, *words]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=300, check=True, env=environment
        ).stdout.splitlines()

    assert of("describe", "md", "") == ["workers", ":4"]
    assert of("descr") == ["describe", ":4"]
    assert of("validate", "") == [":0"], "files"
    assert of("describe", "it's", "$(id)") == [":0"]


@pytest.mark.parametrize("typed", ["describe md ", "describe -n ", "status --context ", "rollout status "])
def test_without_an_answer_nothing_is_offered_and_nothing_printed(tmp_path: Path, typed: str) -> None:
    file = tmp_path / "kubeconfig"
    assert offered(typed.split(" "), file) == []
    file.write_text("contexts: [3]\n")
    assert offered(typed.split(" "), file) == []


def test_a_name_that_a_shell_could_run_is_not_offered(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    names = ["good@eu/1", "$(id)", "a b", "`id`", "-rf", "x;y", "it's", "a\\b"]
    file.write_text("contexts: [" + ", ".join(f"{{name: {name!r}}}" for name in names if "\\" not in name) + "]\n")
    context = typer.Context(typer.main.get_command(typer.Typer(callback=lambda: None)))
    context.params["kubeconfig"] = file
    assert completing.contexts(context, "") == ["good@eu/1"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_of_that_shell(shell: str, tmp_path: Path) -> None:
    printed = nodewright("completion", shell)
    assert printed.returncode == 0, printed.stderr
    assert f"complete_{shell}" in printed.stdout
    if shutil.which(shell):
        (tmp_path / "script").write_text(printed.stdout)
        checked = subprocess.run(
            [shell, "-n", str(tmp_path / "script")], capture_output=True, text=True, timeout=300, check=False
        )
        assert checked.returncode == 0, checked.stderr
