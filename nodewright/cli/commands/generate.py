"""``nodewright generate``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.flags import with_flags
from nodewright.cli.help import Command
from nodewright.cli.screen import say, write

HELP = """Print manifests of a cluster from a template, one of ours or of your own.

Exit code 0: done; 1: what came out is not valid; 2: wrong usage, a value that is missing included.
"""
group = typer.Typer(help=HELP, no_args_is_help=True)

_ENDPOINT = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9.-]+))(?::(?P<port>\d{1,5}))?")
_MOST = 1000


class Provider(StrEnum):
    SIMULATED = "simulated"
    SSH = "ssh"
    OPENSTACK = "openstack"


@group.callback()
def generate() -> None:
    """Print manifests of a cluster from a template."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Options of ``generate cluster``. "" and None: not given."""

    provider: Annotated[Provider | None, typer.Option("--provider", help="Whose template.")] = None
    own: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="A template of your own, in place of --provider.")
    ] = None
    version: Annotated[
        str, typer.Option("--kubernetes-version", metavar="VERSION", help="Such as 1.36.3; ${KUBERNETES_VERSION}.")
    ] = ""
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=0, max=_MOST, help="How many; ${WORKERS}.")] = 1
    control_planes: Annotated[
        int, typer.Option("--control-planes", metavar="N", min=1, max=9, help="An odd number of them.")
    ] = 1
    endpoint: Annotated[
        str,
        typer.Option(
            "--endpoint", metavar="HOST[:PORT]", help="Address of its API; ${ENDPOINT_HOST} and ${ENDPOINT_PORT}."
        ),
    ] = ""
    namespace: Annotated[str, typer.Option("--namespace", "-n", metavar="NS", help="Namespace of all objects.")] = ""
    values: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A variable; repeatable.")] = (
        None
    )
    list_variables: Annotated[
        bool, typer.Option("--list-variables", help="Print what the template asks for, and do nothing.")
    ] = False


@group.command("cluster", cls=Command, short_help="Print a Cluster with its control planes and workers")
@with_flags
def cluster(name: Annotated[str, typer.Argument(metavar="NAME", help="The cluster's name.")], asked: Asked) -> None:
    """Print a Cluster, a Machine for each control plane and a MachineDeployment of workers.

    What is printed passes `nodewright validate`; else nothing is printed but what is wrong.
    """
    from nodewright.cli.generation.template import TemplateError, render, variables  # noqa: PLC0415

    title, text = _template(asked.provider, asked.own)
    if asked.control_planes % 2 == 0:
        hint = "Take 1, 3 or 5: of an even number no more may fail than of one less"
        raise CliError(f"--control-planes: {asked.control_planes} is an even number", hint, USAGE)
    try:
        known = variables(text)
        if asked.list_variables:
            for each in known:
                say(f"{each.name}  {'required' if each.default is None else f'default: {each.default}'}")
            return
        names = {each.name for each in known}
        given = {key: value for key, value in _given(name, asked).items() if value and key in names}
        printed = render(text, given | _assigned(asked.values or []), asked.control_planes)
    except TemplateError as error:
        hint = "--list-variables shows all; --set NAME=VALUE gives one"
        raise CliError(f"{title}: {error}", hint, USAGE) from error
    _must_be_valid(title, printed)
    write(printed)


def _given(name: str, asked: Asked) -> dict[str, str]:
    """Variables that have an option of their own; "" where it is not given."""
    return {
        "WORKERS": str(asked.workers),
        "CONTROL_PLANES": str(asked.control_planes),
        "CLUSTER_NAME": name,
        "KUBERNETES_VERSION": asked.version.removeprefix("v"),
        "NAMESPACE": asked.namespace,
        **_endpoint(asked.endpoint),
    }


def _template(provider: Provider | None, own: Path | None) -> tuple[str, str]:
    """Its title and text. Raises CliError (usage)."""
    if (provider is None) == (own is None):
        raise CliError("one of --provider and --from is needed", "Providers: simulated, ssh, openstack", USAGE)
    if own is not None:
        from nodewright.cli.commands.validate import texts  # noqa: PLC0415

        found = texts([str(own)])
        if len(found) != 1:
            raise CliError(f"--from {own}: {len(found)} files", "Name one file", USAGE)
        return found[0]
    from importlib.resources import files  # noqa: PLC0415

    file = files("nodewright.cli.generation") / "templates" / f"{provider}.yaml"
    return f"template {provider}", file.read_text()


def _endpoint(text: str) -> dict[str, str]:
    if not text:
        return {}
    found = _ENDPOINT.fullmatch(text)
    port = int(found["port"] or 6443) if found else 0
    if found is None or not 0 < port < 65536:
        raise CliError(f"--endpoint: {text[:80]!r} is no HOST or HOST:PORT", "Such as 10.0.0.10:6443", USAGE)
    return {"ENDPOINT_HOST": found["v6"] or found["host"], "ENDPOINT_PORT": str(port)}


def _assigned(values: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in values:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise CliError(f"--set: {each[:80]!r} is no NAME=VALUE", "Such as --set WORKER_POOL=racks", USAGE)
        found[name] = value
    return found


def _must_be_valid(title: str, printed: str) -> None:
    from nodewright.cli.commands.validate import check_text  # noqa: PLC0415
    from nodewright.cli.manifests.checks import Checker  # noqa: PLC0415
    from nodewright.cli.manifests.findings import in_order  # noqa: PLC0415

    findings = in_order(check_text(Checker(), title, printed))
    for finding in findings:
        say(finding.line(), err=True)
    if findings:
        raise CliError(f"{title}: what comes out is not valid", "Correct the values or the template")
