"""A command: its help, and how its switches may be spelt.

The help shows options whole at any width of the terminal, in the groups that they were declared in. Without rich: its
tables cut long names, and an option whose name can't be read can't be typed. Switches take a value (``--watch=false``),
as those of kubectl do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from typer.core import TyperCommand, TyperGroup

_VALUES: Final = {
    **dict.fromkeys(("1", "t", "true"), True),
    **dict.fromkeys(("0", "f", "false"), False),
}
"""As Go reads them, whatever their case."""


class Command(TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, without_values(args, _switches(self.get_params(ctx))))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
                panel = getattr(parameter, "rich_help_panel", None) or usual
                sections.setdefault(panel, []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class Group(TyperGroup):
    """One that is a command itself."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, without_values(args, _switches(self.get_params(ctx))))


class OfGo(Command):
    """Long options with one dash too, as Go's flags are written: for what takes the place of a program in Go."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = {name for each in self.get_params(ctx) for name in (*each.opts, *each.secondary_opts)}
        return super().parse_args(ctx, [_with_two_dashes(each, known) for each in args])


def without_values(args: Iterable[str], switches: dict[str, tuple[str, str]]) -> list[str]:
    """``--watch=false`` as ``--no-watch``, or as nothing. The parser refuses what is no switch, and other values."""
    found = []
    for each in args:
        name, equals, value = each.partition("=")
        wanted = _VALUES.get(value.lower())
        if not equals or name not in switches or wanted is None:
            found.append(each)
        elif spelt := switches[name][0 if wanted else 1]:
            found.append(spelt)
    return found


def _switches(parameters: Iterable[Any]) -> dict[str, tuple[str, str]]:
    """Each spelling of a switch to what means yes and what means no; "" if that has no spelling of its own."""
    found: dict[str, tuple[str, str]] = {}
    for each in parameters:
        if getattr(each, "is_flag", False) and not getattr(each, "count", False):
            yes, no = each.opts[0], next(iter(each.secondary_opts), "")
            found |= dict.fromkeys(each.opts, (yes, no)) | dict.fromkeys(each.secondary_opts, (no, yes))
    return found


def _with_two_dashes(argument: str, known: set[str]) -> str:
    longer = f"-{argument}"
    return longer if longer.partition("=")[0] in known and longer.startswith("--") else argument
