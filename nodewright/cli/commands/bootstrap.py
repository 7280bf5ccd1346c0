"""``nodewright bootstrap``."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodewright.cli import completing
from nodewright.cli.cluster.access import Target
from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.help import Command
from nodewright.cli.options import Context, Kubeconfig, Namespace
from nodewright.cli.screen import say, write

if TYPE_CHECKING:
    from providers.base.contract import BootstrapFormat

HELP = """Make the data with which hosts join a cluster as Nodes.

Exit code 0: done; 1: no data can be made of this; 2: wrong usage.
"""
group = typer.Typer(help=HELP, no_args_is_help=True)


@group.callback()
def bootstrap() -> None:
    """Make the data with which hosts join a cluster as Nodes."""


class Format(StrEnum):
    CLOUD_CONFIG = "cloud-config"
    SHELL = "shell"
    IGNITION = "ignition"


@group.command("user-data", cls=Command, short_help="Print user data with which a stock image joins a cluster")
def user_data(  # noqa: PLR0913, PLR0917  (one parameter per option)
    server: Annotated[str, typer.Option("--server", metavar="URL", help="The API server, as hosts reach it.")],
    ca: Annotated[Path, typer.Option("--certificate-authority", metavar="FILE", help="PEM of its CA.")],
    token: Annotated[Path, typer.Option("--token-file", metavar="FILE", help="Holds a bootstrap token.")],
    kubelet_version: Annotated[str, typer.Option("--kubelet-version", metavar="VERSION", help="Such as 1.36.3.")],
    mirror: Annotated[
        str,
        typer.Option("--mirror", metavar="URL", help="Install from here, as from dl.k8s.io. [default: the image]"),
    ] = "",
    cluster_version: Annotated[
        str, typer.Option("--cluster-version", metavar="VERSION", help="Version of the API server, to check the skew.")
    ] = "",
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore-preflight-errors", metavar="CHECK", help="A check of kubeadm to pass over; repeatable."),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="What to print.")] = Format.CLOUD_CONFIG,
) -> None:
    """Print user data for a Secret that a provider's `userData` names. It holds the token: treat it as a secret.

    The Node is called as its host is, so hosts of one MachineSet may share it while the token is valid.
    """
    from controllers.bootstrap import checks, cloud_config, ignition, shell  # noqa: PLC0415
    from controllers.bootstrap.join import Install, Join  # noqa: PLC0415
    from controllers.bootstrap.plan import join_steps  # noqa: PLC0415
    from controllers.bootstrap.steps import Steps  # noqa: PLC0415

    join = Join(
        kubelet_version=kubelet_version.removeprefix("v"),
        server=server,
        ca=_read(ca, "--certificate-authority"),
        token=_read(token, "--token-file").strip(),
        cluster_version=cluster_version.removeprefix("v"),
        install=Install(mirror),
        ignore_preflight_errors=tuple(ignore or ()),
    )
    steps = join_steps(join, datetime.now(UTC))
    if not isinstance(steps, Steps):
        raise CliError("; ".join(f"{each.field}: {each.message}" for each in steps))
    for warning in checks.warnings(join):
        say(f"warning: {warning}", err=True)
    match form:
        case Format.SHELL:
            write(shell.render(steps))
        case Format.IGNITION:
            write(ignition.render(steps).decode())
        case Format.CLOUD_CONFIG:
            write(cloud_config.render(steps).decode())


@group.command("render", cls=Command, short_help="Print what the host of a Machine would get")
def render(
    machine: Annotated[
        str,
        typer.Argument(metavar="MACHINE", help="Name of a Machine.", autocompletion=completing.names_of("Machine")),
    ],
    namespace: Namespace = None,
    form: Annotated[
        Format | None, typer.Option("--format", help="What to print.", show_default="what its provider takes")
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Print what the host of a Machine would get to join, with x in place of the secret of its bootstrap token.

    Nothing is made. What is refused is said as on the Machine, in its condition BootstrapDataReady.
    """
    from nodewright.cli.cluster.rendering import rendered  # noqa: PLC0415

    forms: dict[Format, BootstrapFormat] = {
        Format.CLOUD_CONFIG: "cloud-config",
        Format.SHELL: "script",
        Format.IGNITION: "ignition",
    }
    wanted = forms[form] if form is not None else None
    write(asyncio.run(rendered(Target(kubeconfig, context), namespace, machine, wanted)))


def _read(path: Path, option: str) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(f"{option}: {path} can't be read: {error}", code=USAGE) from error
