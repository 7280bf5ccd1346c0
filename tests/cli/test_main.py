"""The entry point: help at once, clear words for a wrong command line, documented exit codes."""

from __future__ import annotations

import importlib
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from nodewright.cli import main as cli

HEAVY = ("kopf", "kubernetes_asyncio", "openstack", "grpc")
STARTUP_CPU_SECONDS = 0.3


def modules_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print('\\n'.join(sys.modules), file=sys.stderr)"],
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    return set(done.stderr.split())


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--help"]) == 0
    shown = capsys.readouterr().out
    for name, text in cli.COMMANDS.items():
        assert f"  {name}" in shown
        assert text in shown


def test_no_command_at_all_is_a_usage_error_that_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([]) == 2
    assert "Usage:" in capsys.readouterr().out


def test_help_imports_no_library_at_all() -> None:
    loaded = modules_after("from nodewright.cli.main import run; run(['--help'])")
    assert not loaded & {*HEAVY, "typer", "rich", "yaml", "pydantic", "aiohttp"}


def test_help_takes_less_cpu_than_the_issue_allows() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "nodewright.cli", "--help"], stdout=subprocess.DEVNULL, check=True, timeout=300
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < STARTUP_CPU_SECONDS


def test_validate_imports_no_cluster_library() -> None:
    loaded = modules_after(
        "import io, sys\n"
        "from nodewright.cli.main import run\n"
        "sys.stdin = io.TextIOWrapper(io.BytesIO(b'apiVersion: cluster.k8s.io/v1alpha1\\nkind: Machine\\n'))\n"
        "assert run(['validate', '-']) == 1"
    )
    assert not loaded & {*HEAVY, "aiohttp"}
    assert "nodewright.cli.manifests.checks" in loaded


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_a_module_that_builds(name: str) -> None:
    module = importlib.import_module(f"nodewright.cli.commands.{name}")
    assert callable(getattr(module, "group", None) or module.command)
    assert module.HELP


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_no_command_imports_a_cluster_library_before_it_runs(name: str) -> None:
    assert not modules_after(f"import nodewright.cli.commands.{name}") & {*HEAVY, "aiohttp", "pydantic"}


def test_an_unknown_command_is_a_usage_error_that_guesses(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["verson"]) == 2
    assert "Did you mean `nodewright version`?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["version", "--nonsense"], "No such option: --nonsense"),
        (["--nonsense"], "No such option: --nonsense"),
        (["describe", "md"], "'md' names no object. Name one like md/workers"),
        (["describe", "md/"], "'md' names no object"),
        (["describe", "what/workers"], 'can\'t describe a "what"'),
        (["describe", "md/workers", "more"], "'md/workers' names no object"),
        (["autoscaler", "explain", "pod"], "'pod' names no object. Name one like pod/web-0"),
        (["up", "--port", "70000"], "'--port': must be less than or equal to 65535"),
        (["up", "--cluster=default/prod"], "--cluster is for the autoscaler, and none runs here. Name it"),
        (["run", "--cluster=default/prod"], "--cluster is for the autoscaler, and none runs here. Name it"),
        (["run", "--clusters=all"], "--clusters is for the autoscaler, and none runs here. Name it"),
        (["run", "--controllers=autoscaler", "--no-management-cluster"], "leaves nothing to scale"),
        (["autoscaler", "explain", "md/a", "--clusters=all"], "--clusters: one Cluster has to be meant"),
        (["run", "--orphan-hosts", "never"], "'--orphan-hosts': 'never' is not one of"),
        (["validate"], "no file is named. Name files or folders"),
        (["convert"], "no file is named"),
        (["simulate", "--seeds", "none"], "--seeds"),
        (["version", "-o", "xml"], "xml"),
    ],
)
def test_a_wrong_command_line_is_one_line_that_names_what_is_wrong(
    argv: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(argv) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert error.startswith("nodewright: ")


@pytest.mark.parametrize(("words", "offered"), [("des", "describe"), ("up --in-", "--in-memory")])
def test_a_shell_completes_commands_and_options(words: str, offered: str) -> None:
    typed = f"nodewright {words}"
    environment = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" ")), "_NODEWRIGHT_COMPLETE": "complete_bash"}
    done = subprocess.run(
        [sys.executable, "-m", "nodewright.cli"],
        capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.stdout.split() == [offered]


def test_a_reader_that_has_seen_enough_is_no_failure() -> None:
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {sys.executable} -m nodewright.cli --help | head -1"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.stdout.startswith("Usage:")
    assert "Traceback" not in done.stderr


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("nodewright 0.")


def test_an_unforeseen_error_is_one_line_and_exit_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(_names: object) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(cli, "build_app", explode)
    monkeypatch.delenv("NODEWRIGHT_DEBUG", raising=False)
    assert cli.run(["version"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "ZeroDivisionError: by nothing" in error
    assert "NODEWRIGHT_DEBUG" in error


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("platform.python_version", interrupt)
    assert cli.run(["version"]) == 130


def helps(command: list[str]) -> list[tuple[str, ...]]:
    """The command and every one below it."""
    module = importlib.import_module(f"nodewright.cli.commands.{command[0]}")
    if not hasattr(module, "group"):
        return [tuple(command)]
    return [tuple(command), *((*command, str(below.name)) for below in module.group.registered_commands)]


@pytest.mark.parametrize("command", [words for name in cli.COMMANDS for words in helps([name])], ids=" ".join)
def test_help_cuts_no_option_on_a_narrow_terminal(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.run([*command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert not re.search(r"--\S+ <(str|int|float)", shown), "a placeholder says what to write, not how it is parsed"


def test_options_of_the_autoscaler_stand_together_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["up", "--help"]) == 0
    own, autoscaler = capsys.readouterr().out.split("\nAutoscaler:\n")
    assert "--in-memory" in own
    assert "--node-group-auto-discovery" not in own
    assert "--node-group-auto-discovery" in autoscaler


def test_wrong_usage_points_to_the_help_of_the_very_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["rollout", "status"]) == 2
    assert "`nodewright rollout status --help`" in capsys.readouterr().err
    assert cli.run(["up", "--prot", "1"]) == 2
    assert "`nodewright up --help`" in capsys.readouterr().err


def test_without_a_kubeconfig_it_says_so_and_names_the_one_that_lies_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    assert cli.run(["describe", "md/workers"]) == 1
    said = capsys.readouterr().err
    assert "there is no kubeconfig ($KUBECONFIG, ~/.kube/config)" in said
    assert "Start one with `nodewright up`" in said
    left = tmp_path / ".nodewright" / "up" / "kubeconfig"
    left.parent.mkdir(parents=True)
    left.touch()
    assert cli.run(["describe", "md/workers"]) == 1
    assert f"export KUBECONFIG={left}" in capsys.readouterr().err
