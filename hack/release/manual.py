"""Manual pages of section 1, written from the parser: what ``--help`` shows is what ``man`` shows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from nodewright.cli.main import COMMANDS, build_app

SECTION = 1


def pages(version: str, when: int) -> dict[str, bytes]:
    """``nodewright.1``, and one for each command and each command within it, such as ``nodewright-rollout-undo.1``.

    ``when``: seconds since the epoch; the pages show its date.
    """
    import typer  # noqa: PLC0415 - the parser is needed here alone

    root: Any = typer.main.get_command(build_app(list(COMMANDS)))
    context = root.make_context("nodewright", [], resilient_parsing=True)
    foot = f'"{time.strftime("%Y-%m-%d", time.gmtime(when))}" "nodewright {version}" "Nodewright"'
    return {
        f"{'-'.join(path)}.{SECTION}": "\n".join([*_page(path, command, context, foot), ""]).encode()
        for path, command, context in _walked(("nodewright",), root, context)
    }


def _walked(path: tuple[str, ...], command: Any, context: Any) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    yield path, command, context
    for name, one in sorted(getattr(command, "commands", {}).items()):
        yield from _walked((*path, name), one, type(context)(one, info_name=name, parent=context))


def _page(path: tuple[str, ...], command: Any, context: Any, foot: str) -> Iterator[str]:
    name, text = "-".join(path), (command.help or "").strip()
    short = (command.short_help or text.partition("\n")[0]).strip().rstrip(".")
    yield f'.TH "{name.upper()}" "{SECTION}" {foot}'
    yield from (".SH NAME", f"{_plain(name)} \\- {_plain(short)}")
    yield from (".SH SYNOPSIS", f".B {_plain(' '.join(path))}", _plain(" ".join(command.collect_usage_pieces(context))))
    yield from (".SH DESCRIPTION", *_paragraphs(text))
    for title, records in _sections(command, context).items():
        yield f".SH {title.upper()}"
        for what, meaning in records:
            yield from (".TP", f".B {_plain(what)}", _plain(meaning))
    inside = sorted(getattr(command, "commands", {}))
    if inside:
        yield ".SH COMMANDS"
        for each in inside:
            one = command.commands[each]
            yield from (".TP", f".BR {_plain(f'{name}-{each}')} ({SECTION})", _plain(_title(one)))
    if len(path) > 1:
        yield from (".SH SEE ALSO", f".BR {_plain('-'.join(path[:-1]))} ({SECTION})")


def _title(command: Any) -> str:
    return str(command.short_help or (command.help or "").strip().partition("\n")[0])


def _sections(command: Any, context: Any) -> dict[str, list[tuple[str, str]]]:
    """Arguments and options in the groups in which the help shows them."""
    found: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
            found.setdefault(getattr(parameter, "rich_help_panel", None) or usual, []).append(record)
    return {title: records for title, records in found.items() if records}


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield from (".PP", _plain(" ".join(paragraph.split())))


def _plain(text: str) -> str:
    """``text`` on one line, in which roff finds no request, no escape and no dash that is no minus."""
    safe = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{safe}" if safe[:1] in {".", "'"} else safe
