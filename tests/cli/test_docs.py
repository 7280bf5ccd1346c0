"""docs/cli.md documents every command, every option and every exit code, and nothing that does not exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from nodewright.cli import exits
from nodewright.cli.main import COMMANDS, build_app
from nodewright.runtime.settings.wiring import on_request, reconcilers

PAGE = Path("docs/cli.md").read_text()
SHARED = {"--help", "-h"}
OF_KUBECTL = ("-n", "-A", "-l", "-f", "-o")


def section(name: str) -> str:
    found = re.search(rf"^## {name}$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"docs/cli.md has no section for {name}"
    return found[1]


def options_of(name: str) -> set[str]:
    group = typer.main.get_command(build_app([name]))
    commands = [group.commands[name]]  # type: ignore[attr-defined]
    for command in commands:
        commands.extend(getattr(command, "commands", {}).values())
    named = {option for c in commands for param in c.params for option in (*param.opts, *param.secondary_opts)}
    return {option for option in named if option.startswith("-")} - SHARED


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_every_command_is_documented(name: str) -> None:
    assert {option for option in options_of(name) if f"`{option}" not in section(name)} == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_no_option_is_documented_that_does_not_exist(name: str) -> None:
    rows = [line for line in section(name).splitlines() if line.startswith("| `")]
    documented = {option for row in rows for option in re.findall(r"`(--?[a-z][a-z-]*)", row.split("|")[1])}
    assert documented - options_of(name) == set()


def test_every_command_is_in_the_table_with_its_help_line() -> None:
    for name, text in COMMANDS.items():
        assert f"[`{name}`](#{name})" in PAGE
        first = text[0].lower() + text[1:]
        assert first in PAGE, f"{name}: the table should say: {first}"


def test_every_controller_that_run_knows_is_documented() -> None:
    known = [*(reconciler.name for reconciler in reconcilers()), *on_request()]
    assert [name for name in known if f"`{name}`" not in section("run")] == []


def test_every_exit_code_is_documented() -> None:
    codes = {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
    table = section("For all commands")
    assert {code for code in codes if f"| {code} |" not in table} == set()


def leaves(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", {})
    for word, each in below.items():
        yield from leaves(f"{name} {word}", each)
    if not below:
        yield name, command


def test_the_table_of_kubectls_flags_is_that_of_the_parser() -> None:
    flags: dict[str, set[str]] = {}
    for name in COMMANDS:
        top = typer.main.get_command(build_app([name])).commands[name]  # type: ignore[attr-defined]
        for title, command in leaves(name, top):
            flags[title] = {option for each in command.params for option in each.opts} & set(OF_KUBECTL)
    documented = {}
    for line in section("For all commands").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 1 + len(OF_KUBECTL) and cells[0].startswith("`"):
            documented[cells[0].strip("`")] = {flag for flag, cell in zip(OF_KUBECTL, cells[1:], strict=True) if cell}
    assert documented == {title: found for title, found in flags.items() if found}
