"""Text of tenants reaches a terminal as text: nothing in it moves the cursor, sets a title or hides a line."""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from api.visible import visible
from nodewright.cli.exits import CliError
from nodewright.cli.main import _fail
from nodewright.cli.screen import console
from nodewright.runtime.telemetry import logs

CLI = Path(__file__).resolve().parents[2] / "nodewright" / "cli"
ESCAPES = "\x1b[2J\x1b]0;title\x07\x9b31m\r\x08\u202e\u200b"


@given(st.text())
def test_visible_text_has_nothing_that_steers(text: str) -> None:
    shown = visible(text)
    assert all(one in "\n\t" or one.isprintable() or ord(one) >= 0xA0 for one in shown)
    assert not set(shown) & set(ESCAPES) - set("[2J]0;title31m")
    assert visible(shown) == shown


def test_what_rich_prints_is_visible_and_keeps_its_styles() -> None:
    stream = io.StringIO()
    console(stream).print(Text(f"a{ESCAPES}b", "bold"), f"c{ESCAPES}")
    assert not set(stream.getvalue()) & {"\x1b", "\x07", "\x9b", "\r", "\x08", "\u202e"}
    assert "\\x1b[2J" in stream.getvalue()


def test_a_line_of_the_log_is_visible_and_stays_one_line() -> None:
    stream = io.StringIO()
    try:
        logs.configure(json=False, stream=stream)
        structlog.get_logger("x").warning(f"event{ESCAPES}\nforged", name=f"n{ESCAPES}\nforged", more=[ESCAPES])
    finally:
        logs.configure(json=True)
    assert not set(stream.getvalue()) & {"\x07", "\x9b", "\r", "\x08", "\u202e"}
    assert "\x1b" not in stream.getvalue()
    assert stream.getvalue().count("\n") == 1


@pytest.mark.parametrize("command", ["validate", "convert", "plan"])
def test_a_file_with_escapes_prints_none(command: str, tmp_path: Path) -> None:
    obj = {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": f"Machine{ESCAPES}",
        "metadata": {"name": f"one{ESCAPES}\nforged", "labels": {ESCAPES: ESCAPES}},
        "spec": {ESCAPES: 1, "providerConfig": {"value": {"apiVersion": ESCAPES, "kind": ESCAPES}}},
    }
    file = tmp_path / "machine.yaml"
    file.write_text(json.dumps(obj))
    arguments = ["-f", str(file)] if command == "plan" else [str(file)]
    done = subprocess.run(
        [sys.executable, "-m", "nodewright.cli", command, *arguments], capture_output=True, timeout=300, check=False
    )
    said = done.stdout.decode() + done.stderr.decode()
    assert said
    assert not set(said) & {"\x1b", "\x07", "\x9b", "\r", "\x08", "\u202e"}


def test_an_error_prints_none(capsys: pytest.CaptureFixture[str]) -> None:
    _fail(CliError(f"no {ESCAPES}", ESCAPES))
    assert "\x1b" not in capsys.readouterr().err


def test_nobody_prints_past_the_door() -> None:
    found = []
    for file in sorted(CLI.rglob("*.py")):
        if file == CLI / "screen.py":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                own = called == "print" and ast.unparse(node.args[0]) == "help_text()" if node.args else False
                if called in ("print", "typer.echo", "typer.secho", "click.echo", "Console") and not own:
                    found.append(f"{file.relative_to(CLI)}:{node.lineno}: {called}")
    assert found == [], "print by nodewright.cli.screen"


def test_a_locale_of_few_characters_gets_marks_of_its_own() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    out = console(stream)
    out.print("└─Machine/a ✔ 2× … naïve")
    stream.flush()
    assert stream.buffer.getvalue().decode("ascii").rstrip()  # type: ignore[attr-defined] == r"`-Machine/a + 2x ~ na\xefve"
