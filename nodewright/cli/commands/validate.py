"""``nodewright validate``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from nodewright.cli.choosing import Files, NamedFiles, some_files
from nodewright.cli.exits import FAILED, USAGE, CliError
from nodewright.cli.manifests.findings import Finding, in_order
from nodewright.cli.screen import say
from nodewright.cli.structured import Output, OutputOption, show

HELP = """Check manifests offline: YAML, schema, rules between fields and the provider's own configuration.

Prints every error as `file:line: kind name: field: message` and asks no cluster. Folders are searched for *.yaml,
*.yml and *.json; `-` reads standard input. Exit code 0: no error; 1: errors were found; 2: wrong usage.
"""

_SUFFIXES = (".yaml", ".yml", ".json")
STDIN = "-"


def command(
    files: NamedFiles = None,
    filenames: Files = None,
    output: OutputOption = Output.TEXT,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only, no summary.")] = False,
) -> None:
    from nodewright.cli.manifests.checks import Checker  # noqa: PLC0415

    checker = Checker()
    read = texts(some_files(files, filenames))
    findings = in_order(finding for name, text in read for finding in check_text(checker, name, text))
    if output is not Output.TEXT:
        show({"findings": [f.data() for f in findings], "objects": checker.checked}, output)
    else:
        for finding in findings:
            say(finding.line())
        if not quiet:
            say(_summary(findings, checker.checked, checker.foreign), err=True)
    if findings:
        raise typer.Exit(FAILED)


def check_text(checker: object, name: str, text: str) -> list[Finding]:
    """Every finding of one file's text."""
    from nodewright.cli.manifests.checks import Checker  # noqa: PLC0415
    from nodewright.cli.manifests.documents import Broken, read  # noqa: PLC0415
    from nodewright.cli.manifests.positions import write_path  # noqa: PLC0415

    assert isinstance(checker, Checker)
    found: list[Finding] = []
    for part in read(text):
        if isinstance(part, Broken):
            found.append(Finding(name, part.position, part.message, path=write_path(part.path)))
        else:
            found.extend(checker.check(name, part))
    return found


def texts(files: list[str]) -> list[tuple[str, str]]:
    """Name and text of every file meant. Raises CliError for one that can't be read."""
    paths: list[Path] = []
    read: list[tuple[str, str]] = []
    for name in files:
        path = Path(name)
        if name == STDIN:
            read.append(("<stdin>", _text(sys.stdin.buffer.read(_limit() + 1), "<stdin>")))
        elif _is_folder(path):
            paths.extend(_files_in(name))
        else:
            paths.append(path)
    for path in paths:
        try:
            with path.open("rb") as file:
                read.append((str(path), _text(file.read(_limit() + 1), str(path))))
        except OSError as error:
            raise CliError(f"{path}: {error.strerror}", "Check the path", USAGE) from error
    return read


def _files_in(folder: str) -> list[Path]:
    inside = sorted(p for p in Path(folder).rglob("*") if p.suffix in _SUFFIXES and p.is_file())
    if not inside:
        raise CliError(f"{folder}: no {', '.join(_SUFFIXES)} file in this folder", "Name a file", USAGE)
    return inside


def _is_folder(path: Path) -> bool:
    """Raises CliError for a name that the system refuses, like one that is too long."""
    try:
        return path.is_dir()
    except OSError as error:
        raise CliError(f"{str(path)[:200]}: {error.strerror}", "Check the path", USAGE) from error


def _limit() -> int:
    from nodewright.cli.manifests.documents import MAX_BYTES  # noqa: PLC0415

    return MAX_BYTES


def _text(data: bytes, name: str) -> str:
    if len(data) > _limit():
        raise CliError(f"{name}: larger than {_limit() >> 20} MiB", "Split the file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CliError(f"{name}:{line}: not UTF-8 text", "Save the file as UTF-8") from error


def _summary(findings: list[Finding], objects: int, foreign: int) -> str:
    counted = f"{objects} object{'s' if objects != 1 else ''} checked"
    if foreign:
        counted += f" ({foreign} of other kinds: only apiVersion, kind and name)"
    if not findings:
        return f"{counted}, no error found" if objects else "nothing to check: no object found"
    return f"{counted}, {len(findings)} error{'s' if len(findings) != 1 else ''} found"
