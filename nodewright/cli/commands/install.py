"""``nodewright install``."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodewright.cli.cluster.access import Target, client_of, connect
from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.flags import with_flags
from nodewright.cli.options import Context, Kubeconfig
from nodewright.cli.screen import say

if TYPE_CHECKING:
    from nodewright.cli.installation.applying import How
    from nodewright.cli.installation.manifests import Choice

HELP = """Install the CustomResourceDefinitions into a cluster by server-side apply, and wait until they are served.

With `--controllers --image=REGISTRY/nodewright:0.1.0` also what runs there: namespace, rights and Deployments of
`deploy/`, rendered by `kubectl kustomize`; `--print` shows all of it and reaches no cluster. Safe to repeat: it also
upgrades. Exit code 0: installed; 1: failed; 2: wrong usage.
"""

_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class ControllerFlags:
    """As they are typed."""

    controllers: Annotated[
        bool, typer.Option("--controllers", help="The controllers too, with namespace and rights. Needs kubectl.")
    ] = False
    image: Annotated[str, typer.Option("--image", metavar="IMAGE", help="Their image, with a tag or a digest.")] = ""
    layout: Annotated[
        str, typer.Option("--layout", metavar="base|split", help="One Deployment, or two with fewer rights each.")
    ] = "base"
    components: Annotated[
        list[str] | None,
        typer.Option(
            "--with", metavar="NAME", help="A folder of deploy/components, such as bootstrap or ssh. Repeatable."
        ),
    ] = None
    print_: Annotated[
        bool, typer.Option("--print", help="Print the manifests as YAML, kinds included, and do nothing.")
    ] = False

    def choice(self) -> Choice | None:
        """None: the kinds alone. Raises CliError (usage)."""
        from nodewright.cli.installation.manifests import Choice  # noqa: PLC0415

        given = [flag for flag, value in (("--image", self.image), ("--with", self.components)) if value]
        if not self.controllers:
            if given or self.print_:
                raise CliError(f"{(given or ['--print'])[0]} goes with --controllers", code=USAGE)
            return None
        if not self.image:
            raise CliError("--controllers needs --image", "For instance --image=REGISTRY/nodewright:0.1.0", USAGE)
        return Choice(self.image, self.layout, tuple(self.components or ()))


DryRun = Annotated[bool, typer.Option("--dry-run", help="Let the server check everything, change nothing.")]
Force = Annotated[bool, typer.Option("--force", help="Take over fields that others have applied.")]
Patience = Annotated[
    float,
    typer.Option("--timeout", metavar="SECONDS", min=0, help="Seconds to wait until all is served; 0: don't."),
]


@with_flags
def command(
    *,
    controllers: ControllerFlags,
    dry_run: DryRun = False,
    force: Force = False,
    timeout: Patience = 60,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    objects = rendered(controllers)
    if controllers.print_:
        from api.yamltext import dump  # noqa: PLC0415

        say("---\n".join(dump(obj) for obj in objects), nl=False)
        return
    from nodewright.cli.installation.applying import How  # noqa: PLC0415

    asyncio.run(_install(Target(kubeconfig, context), How(dry_run, force, timeout), objects))


def rendered(controllers: ControllerFlags) -> list[dict[str, Any]]:
    """Before any cluster is reached: what is wrong with the flags is no matter of it."""
    choice = controllers.choice()
    if choice is None:
        return []
    from nodewright.cli.installation.manifests import render  # noqa: PLC0415

    return render(choice)


async def _install(target: Target, how: How, objects: list[dict[str, Any]]) -> None:
    from nodewright.cli.installation.everything import install_in  # noqa: PLC0415

    connection = await connect(target)
    async with client_of(connection) as client:
        await install_in(client, objects, how)
    if not how.dry_run and not objects:
        say("ready: `kubectl api-resources --api-group=cluster.k8s.io` lists them, `nodewright run` serves them")
