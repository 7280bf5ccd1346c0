"""Every command that a message tells to type is run: what a person copies has to work.

Commands of the program are run with ``--help`` behind them: words and options are read, and nothing is done. Those
of kubectl are run against a plane; what would wait, change or need a name that is not there is run with ``--help`` too.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.program import Kubectl, Up
from nodewright.cli import main
from tests.docs.pages import ROOT

PACKAGES = ("api", "controllers", "nodewright", "providers")
QUOTED = re.compile(r"`((?:nodewright|kubectl) [^`{]*(?:\{\}[^`{]*)*)`")
NO_COMMANDS = {"kubectl get nodewright", "kubectl nodewright COMMAND"}
"""A category of `kubectl get`, which a table shows; the plugin, which is tried elsewhere."""
SUBSTITUTES = {"nodewright COMMAND --help": "nodewright status --help", "nodewright {}": "nodewright status"}
ONLY_HELP = ("delete", "edit", "kustomize", "port-forward", "rollout")
NEEDS_MORE = {"kubectl get", "kubectl get -l", "kubectl explain"}
"""A verb that is named, not a whole command."""


def commands() -> set[str]:
    """What stands in backticks in texts of the code, with ``{}`` where a value goes."""
    return {
        " ".join(command.split())
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        for text in texts(ast.parse(path.read_text()))
        for command in QUOTED.findall(text)
    } - NO_COMMANDS


def texts(tree: ast.AST) -> Iterator[str]:
    """Strings but for docstrings; of one with values in it the parts."""
    nodes = list(ast.walk(tree))
    silent = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            silent |= {id(part) for part in node.values}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node.value


COMMANDS = sorted(commands())
OURS = [command for command in COMMANDS if command.startswith("nodewright ")]
KUBECTLS = [command for command in COMMANDS if command.startswith("kubectl ")]


def words_of(command: str) -> list[str]:
    return shlex.split(SUBSTITUTES.get(command, command))[1:]


def test_they_are_found() -> None:
    assert {"nodewright up", "nodewright rollout resume md/{}"} <= set(OURS)
    assert "kubectl get md -A" in KUBECTLS


@pytest.mark.parametrize("command", OURS)
def test_a_command_of_ours_is_one(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [word.replace("{}", "name") for word in words_of(command)]
    assert main.run([*words, "--help"]) == 0, capsys.readouterr().err
    assert f"Usage: nodewright {words[0]}" in capsys.readouterr().out


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path) -> Iterator[Kubectl]:
    with Up(tmp_path_factory.mktemp("said"), kubectl_binary, "--in-memory", "--no-controllers") as running:
        yield running.kubectl


@pytest.mark.parametrize("command", KUBECTLS)
def test_a_command_of_kubectl_is_one(command: str, plane: Kubectl) -> None:
    words = words_of(command)
    if "{}" in command or command in NEEDS_MORE or set(ONLY_HELP) & set(words):
        assert plane(*(["describe"] if words[0] == "-n" else words[:1]), "--help")
    else:
        plane(*words)
