"""No command line whatever ends in a traceback or an internal error.

1000 random ones, with no cluster and with one that does not answer.
"""

from __future__ import annotations

import contextlib
import io
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.core import TyperCommand

from nodewright.cli import exits, main
from nodewright.cli.help import Group
from tests.cli.command_lines import CommandLines, leaves

CODES = {exits.OK, exits.FAILED, exits.USAGE}
STAY = frozenset({"up", "down", "demo", "run", "webhook", "gateway", "simulate"})
"""They go on until they are stopped, or stop what runs: of these only the command line is read."""

OURS = b"apiVersion: cluster.k8s.io/v1alpha1\n"
FORBIDDEN = ("Traceback", "internal error", "\x1b]", "\u202e")


@pytest.fixture
def port() -> Iterator[int]:
    """Nobody listens there, and nobody else can."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.fixture
def files(tmp_path: Path, port: int) -> list[Path]:
    """What may be given as a file: kubeconfigs, manifests, garbage, a folder, nothing."""
    dead = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "web",
        "contexts": [{"name": "web", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "a", "user": {}}],
    }
    contents = {
        "dead.kubeconfig": yaml.safe_dump(dead).encode(),
        "empty": b"",
        "binary": bytes(range(256)) * 16,
        "list.yaml": b"[1, 2]",
        "text.yaml": b"just words",
        "scalars.yaml": b"apiVersion: 3\nkind: []\nmetadata: x\nspec: 1\n",
        "config.yaml": b"clusters: {a: 1}\ncontexts: [3, null]\nusers: x\ncurrent-context: []\n",
        "deep.yaml": b"[" * 5_000,
        "tabs.yaml": b"a:\n\t- b: *c\n",
        "machine.yaml": OURS + b"kind: Machine\nmetadata: {name: a}\nspec: {verions: 3}\n",
        "numbers.yaml": OURS + b"kind: MachineSet\nmetadata: {name: 1e999}\nspec: {replicas: .nan}\n",
        "key.pem": b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    return [*(tmp_path / name for name in contents), tmp_path / "folder", tmp_path / "loop", tmp_path / "no" / "file"]


@pytest.fixture
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine is read or written: no kubeconfig, no home, no cloud, a folder of its own."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "COLUMNS", "NODEWRIGHT_DEBUG", "OS_CLOUD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for of in (TyperCommand, Group):
        monkeypatch.setattr(of, "invoke", _only_read(of.invoke))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"kind: Machine\n")))


def _only_read(invoke: Callable[..., Any]) -> Callable[..., Any]:
    """For commands that stay, the end once their options are read."""

    def invoked(self: Any, ctx: Any) -> Any:
        return None if STAY & set(ctx.command_path.split()[1:2]) else invoke(self, ctx)

    return invoked


def run(argv: list[str], encoding: str) -> tuple[int, str]:
    """The exit code and all that was said, on a terminal of that encoding."""
    said = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main.run(argv)
    raw = said.buffer
    assert isinstance(raw, io.BytesIO)
    return code, raw.getvalue().decode(encoding)


def faults(argv: list[str], encoding: str) -> Iterator[str]:
    try:
        code, said = run(argv, encoding)
    except BaseException as error:
        yield f"raised {type(error).__name__}: {error}"
        return
    if code not in CODES:
        yield f"ended with {code}"
    if code != exits.OK and not said.strip():
        yield f"ended with {code} and said nothing"
    yield from (f"said {said[-500:]}" for word in FORBIDDEN if word in said)


def check(first: int, count: int, files: list[Path]) -> None:
    found = []
    for seed in range(first, first + count):
        argv = CommandLines(seed, files).next()
        shown = f"seed {seed}: {[word[:80] for word in argv]}"
        found += [f"{shown} {fault}" for fault in faults(argv, "ascii" if seed % 5 == 0 else "utf-8")]
    assert found == [], "\n".join(found[:20])


@pytest.mark.usefixtures("somewhere")
def test_random_command_lines_end_well(files: list[Path]) -> None:
    check(0, 60, files)


@pytest.mark.slow
@pytest.mark.usefixtures("somewhere")
def test_a_thousand_random_command_lines_end_well(files: list[Path]) -> None:
    check(1000, 1000, files)


@pytest.mark.usefixtures("somewhere")
@pytest.mark.parametrize("command", ["plan", "validate", "convert", "status"])
def test_a_name_that_is_too_long_for_a_file_is_told(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "a" * 5000)
    code, said = run([command, *(["a" * 5000] if command != "status" else [])], "utf-8")
    assert code in {exits.FAILED, exits.USAGE}
    assert "File name too long" in said
    assert len(said) < 1000


def test_every_command_is_among_them() -> None:
    assert {leaf.path[0] for leaf in leaves() if leaf.path} == set(main.COMMANDS)
