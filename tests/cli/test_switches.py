"""Switches as kubectl and Kubernetes' own programs take them: with a value, and the original proxy's with one dash."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from nodewright.cli import main as cli
from nodewright.cli.help import Command, OfGo


def said(*arguments: str, cls: type[Command] = Command) -> str:
    app = typer.Typer()

    @app.command(cls=cls)
    def command(
        watch: Annotated[bool, typer.Option("--watch/--no-watch", "-w")] = True,
        port: Annotated[int, typer.Option("--port")] = 1,
        loud: Annotated[bool, typer.Option("--loud", "--v")] = False,
    ) -> None:
        typer.echo(f"{watch} {port} {loud}")

    return CliRunner().invoke(app, list(arguments)).output.strip()


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("", "True 1 False"),
        ("--watch=false", "False 1 False"),
        ("--watch=False --port=2", "False 2 False"),
        ("--watch=0", "False 1 False"),
        ("--no-watch --watch=true", "True 1 False"),
        ("-w=false", "False 1 False"),
        ("--loud=true", "True 1 True"),
        ("--loud=false", "True 1 False"),
        ("--no-watch=false", "True 1 False"),
    ],
)
def test_a_switch_may_have_a_value(given: str, wanted: str) -> None:
    assert said(*given.split()) == wanted


def test_what_is_neither_true_nor_false_is_refused_by_name() -> None:
    assert "--watch" in said("--watch=maybe")


@pytest.mark.parametrize("given", ["-port=3 -loud", "-port 3 -v=true", "--port 3 -loud=true"])
def test_what_follows_a_program_in_go_takes_one_dash(given: str) -> None:
    assert said(*given.split(), cls=OfGo) == "True 3 True"


def test_rollout_status_is_asked_once_as_kubectl_has_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert cli.run(["rollout", "status", "md/workers", "--watch=false"]) == 1
    assert "KUBECONFIG names no file" in capsys.readouterr().err, "it was understood, and there is no cluster"


def test_a_group_that_is_a_command_takes_them_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["gateway", "externalgrpc", "--reflection=false", "--port=maybe"]) == 2
    assert "--port" in capsys.readouterr().err


def test_the_proxy_takes_the_flags_of_the_original_as_that_writes_them(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["-config-file=/nowhere.json", "-port", "8080", "-v=4", "-logtostderr=true", "-alsologtostderr"]
    assert cli.run(["gateway", "cloudpool-proxy", *arguments]) == 1
    assert "could not read config" in capsys.readouterr().err
    assert cli.run(["gateway", "cloudpool-proxy", "-version"]) == 0
    assert capsys.readouterr().out.startswith("Version: ")
