"""``nodewright users``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nodewright.apiserver.roles import Role
from nodewright.cli.commands.up import DEFAULT_FOLDER
from nodewright.cli.help import Command
from nodewright.cli.options import duration_of
from nodewright.cli.screen import say
from nodewright.cli.structured import Output, OutputOption, show

HELP = """Give people access to the control plane of `nodewright up`, and take it from them. It need not be running.

Exit code 0: done; 1: failed; 2: wrong usage.
"""

group = typer.Typer(help=HELP, no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Of the person.")]
DataDir = Annotated[
    Path | None, typer.Option("--data-dir", metavar="DIR", help=f"Of which control plane. [default: {DEFAULT_FOLDER}]")
]
Expires = Annotated[
    str,
    typer.Option("--expires", metavar="DURATION", help='After how long the token ends ("720h"; 0: never).'),
]
A_YEAR = "8760h"
"""As long as the client certificates of kubeadm's kubeconfigs."""


@group.command("add", cls=Command, short_help="Give somebody a kubeconfig")
def add(
    name: Name,
    role: Annotated[
        Role, typer.Option("--role", help="admin: everything; read-only: get, list and watch all but Secrets.")
    ],
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig", metavar="FILE", help="Where to write the kubeconfig (mode 0600). [default: NAME.kubeconfig]"
        ),
    ] = None,
    expires: Expires = A_YEAR,
    data_dir: DataDir = None,
) -> None:
    """Write a kubeconfig for NAME with a token that is nowhere else: the folder keeps its hash."""
    from nodewright.cli.embedded.people import add as added  # noqa: PLC0415

    path = kubeconfig or Path(f"{name}.kubeconfig")
    added(_folder(data_dir), name, role, path, duration_of("--expires", expires))
    say(f"{name} may {'do everything' if role is Role.ADMIN else 'get, list and watch all but Secrets'} with {path}")


@group.command("list", cls=Command, short_help="List who has access")
def list_(data_dir: DataDir = None, output: OutputOption = Output.TEXT) -> None:
    """Names, roles, since when and until when; the kubeconfig in the data folder is the administrator's besides."""
    from nodewright.cli.embedded.people import people  # noqa: PLC0415

    rows: list[dict[str, Any]] = [
        {"name": each.name, "role": each.role.value, "since": each.since, "until": each.until}
        for each in people(_folder(data_dir))
    ]
    if output is not Output.TEXT:
        show({"users": rows}, output)
    elif not rows:
        say("nobody but the administrator; `nodewright users add` gives access")
    else:
        wide = max(len(row["name"]) for row in rows)
        for row in rows:
            end = f"until {row['until']}" if row["until"] else "for ever"
            say(f"{row['name'].ljust(wide)}  {row['role'].ljust(9)}  since {row['since']}  {end}")


@group.command("renew", cls=Command, short_help="Extend somebody's token")
def renew(name: Name, expires: Expires = A_YEAR, data_dir: DataDir = None) -> None:
    """The token ends so long after now, even if it has expired already. NAME's kubeconfig stays as it is."""
    from nodewright.cli.embedded.people import renew as renewed  # noqa: PLC0415

    person = renewed(_folder(data_dir), name, duration_of("--expires", expires))
    say(f"{name} has access {f'until {person.until}' if person.until else 'for ever'}")


@group.command("remove", cls=Command, short_help="Take somebody's access")
def remove(name: Name, data_dir: DataDir = None) -> None:
    """NAME's token is refused from the next request on, and watches end."""
    from nodewright.cli.embedded.people import remove as removed  # noqa: PLC0415

    removed(_folder(data_dir), name)
    say(f"{name} has no access any more")


def _folder(data_dir: Path | None) -> Path:
    return (data_dir or DEFAULT_FOLDER).absolute()
