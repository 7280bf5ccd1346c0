"""``nodewright explain``."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodewright.cli import completing
from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.screen import console, say
from nodewright.cli.structured import Output, OutputOption, show

if TYPE_CHECKING:
    from nodewright.cli.schema_fields import Fields, SchemaField
    from providers.base.contract import ConfigKind, Registration
    from providers.base.registry import Registry

HELP = """Show the fields of a provider's configuration, as `kubectl explain` does those of Kubernetes' kinds.

Without a name it lists the providers that are installed. No cluster and no cloud is asked.

Exit code 0: shown; 1: there is no such provider or field; 2: wrong usage.
"""
_WORDS = ("provider", "providers")


def command(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="provider.", autocompletion=lambda: ["provider"])],
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME[.FIELD...]",
            help="Like openstack or openstack.ports; none: list all.",
            autocompletion=completing.providers,
        ),
    ] = None,
    recursive: Annotated[bool, typer.Option("--recursive", help="The fields of all levels, without texts.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    from providers.base.registry import Registry  # noqa: PLC0415

    kind, slash, rest = kind.partition("/")
    if kind.lower() not in _WORDS or (slash and (name is not None or not rest)):
        raise CliError(
            f'can\'t explain "{kind}{slash}{rest}"',
            "`nodewright explain provider` lists providers; `kubectl explain machine.spec` has the fields of kinds",
            USAGE,
        )
    registry = Registry.installed()
    wanted = name or rest
    if not wanted:
        _list(registry, output)
        return
    registration, path = _found(registry, wanted)
    config_kind, fields = _kind_with(registration, path)
    below = fields.all_below(path) if recursive else fields.below(path)
    value = _value(registration, config_kind, fields, path)
    if output is not Output.TEXT:
        show({**value, "fields": [as_value(each) for each in below]}, output)
        return
    for line in lines(value, below, console().width, brief=recursive):
        say(line)


def _list(registry: Registry, output: Output) -> None:
    found = [
        {"name": each.name, "apiVersion": kind.api_version, "kind": kind.kind}
        for each in registry.registrations()
        for kind in each.config_kinds
    ]
    broken = [{"name": name, "broken": why} for name, why in sorted(registry.broken.items())]
    if output is not Output.TEXT:
        show({"providers": [*found, *broken]}, output)
        return
    for one in found:
        say(f"{one['name']}  {one['apiVersion']} {one['kind']}")
    for each in broken:
        say(f"{each['name']}  can't be loaded: {each['broken']}")
    if not found and not broken:
        say("no provider is installed; docs/providers.md tells how to write one")


def _found(registry: Registry, wanted: str) -> tuple[Registration, tuple[str, ...]]:
    """The provider and the path of the field. Names of providers may have dots: the longest one that fits is meant."""
    from nodewright.cli.schema_fields import path_of  # noqa: PLC0415

    for name in sorted(registry.names, key=len, reverse=True):
        if wanted == name or wanted.startswith((f"{name}.", f"{name}[")):
            registration = registry.named(name)
            if registration is None:
                why = registry.broken.get(name, "")
                raise CliError(f"provider {name} can't be loaded: {why}", "Install its package anew")
            return registration, path_of(wanted.removeprefix(name))
    name = wanted.partition(".")[0]
    raise CliError(f'there is no provider "{name}"', _hint(name, registry.names))


def _kind_with(registration: Registration, path: tuple[str, ...]) -> tuple[ConfigKind, Fields]:
    """The first config type of the provider that has the field. Raises CliError naming what is near."""
    from nodewright.cli.schema_fields import Fields  # noqa: PLC0415

    all_of_them = [(kind, Fields(kind.schema)) for kind in registration.config_kinds]
    for kind, fields in all_of_them:
        if not path or fields.at(path) is not None:
            return kind, fields
    for end in range(len(path)):
        names = [one.path.rpartition(".")[2] for _, fields in all_of_them for one in fields.below(path[:end])]
        if path[end] not in names:
            where = f"{registration.name}.{'.'.join(path[:end])}" if end else registration.name
            raise CliError(f'{where} has no field "{path[end]}"', _hint(path[end], names))
    raise CliError(f"provider {registration.name} has no config type")


def _hint(name: str, known: tuple[str, ...] | list[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415

    near = get_close_matches(name[:100], known, n=1)
    if near:
        return f"Did you mean {near[0]}?"
    return f"There are: {', '.join(known)}" if known else "It has no fields"


def _value(registration: Registration, kind: ConfigKind, fields: Fields, path: tuple[str, ...]) -> dict[str, Any]:
    config = {"provider": registration.name, "apiVersion": kind.api_version, "kind": kind.kind}
    field = fields.at(path)
    if field is None:
        return {**config, "description": fields.description}
    return {**config, "field": as_value(field)}


def as_value(field: SchemaField) -> dict[str, Any]:
    """What is empty is left out."""
    value = {
        "path": field.path,
        "type": field.type,
        "required": field.required,
        "default": field.default,
        "description": field.description,
        "values": list(field.values),
        "limits": list(field.limits),
    }
    return {name: each for name, each in value.items() if each not in (None, "", [], False) or name == "required"}


def lines(value: dict[str, Any], below: list[SchemaField], width: int, *, brief: bool = False) -> list[str]:
    """For a terminal of ``width`` columns. ``brief``: names and types only."""
    field = value.get("field")
    found = [f"PROVIDER  {value['provider']}", f"CONFIG    {value['apiVersion']} {value['kind']}"]
    if field is not None:
        found += [f"FIELD     {field['path']}", f"TYPE      {field['type']}", *_facts(field, "", width)]
    text = field.get("description", "") if field is not None else value["description"]
    found += ["", *_folded(text, "  ", width)] if text else []
    if below:
        found += ["", "FIELDS"]
    for each in below:
        shown = as_value(each)
        found.append(f"  {each.path}  {each.type}{', required' if each.required else ''}")
        if not brief:
            found += [*_folded(each.description, "      ", width), *_facts(shown, "      ", width)]
    return found


def _facts(field: dict[str, Any], indent: str, width: int) -> list[str]:
    import json  # noqa: PLC0415

    parts = []
    if not indent and field["required"]:
        parts.append("required")
    if "values" in field:
        parts.append(f"one of: {', '.join(field['values'])}")
    parts += field.get("limits", [])
    if "default" in field:
        parts.append(f"default: {json.dumps(field['default'], ensure_ascii=False)}")
    return _folded("; ".join(parts), indent or " " * 10, width)


def _folded(text: str, indent: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        max(width, 40),
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
