"""``nodewright upgrade``."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodewright.cli import completing
from nodewright.cli.choosing import AllNamespaces
from nodewright.cli.cluster.access import Target, client_of, connect
from nodewright.cli.commands.install import ControllerFlags, DryRun, Force, Patience, rendered
from nodewright.cli.commands.version import own_version
from nodewright.cli.exits import FAILED, USAGE, CliError
from nodewright.cli.flags import with_flags
from nodewright.cli.help import Command
from nodewright.cli.options import Context, Kubeconfig, Namespace
from nodewright.cli.screen import say
from nodewright.cli.structured import Output, OutputOption, show

if TYPE_CHECKING:
    from nodewright.cli.installation.applying import How
    from nodewright.cli.upgrading.kubernetes import Cluster
    from nodewright.cli.upgrading.own import Controllers, Definition
    from nodewright.cli.upgrading.planning import Plan
    from nodewright.runtime.kube.client import KubeClient

HELP = """Say which versions of Kubernetes may come next and what waits for what, and upgrade Nodewright itself.

Exit code 0: worked out, or upgraded; 1: something forbids it, or it failed; 2: wrong usage.
"""
group = typer.Typer(help=HELP, no_args_is_help=True)


@group.callback()
def upgrade() -> None:
    """Say which versions of Kubernetes may come next and what waits for what, and upgrade Nodewright itself."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was read of Nodewright's own part, and why this version may not be installed."""

    controllers: list[Controllers]
    definitions: list[Definition]
    hindrances: list[str]

    @property
    def is_behind(self) -> bool:
        """Whether there is something that `upgrade apply` would surely change, and may."""
        from nodewright.cli.upgrading.own import Verdict  # noqa: PLC0415

        done = {Verdict.SAFE, Verdict.LEFT}
        old = any(each.version not in {"", own_version()} for each in self.controllers)
        return not self.hindrances and (old or any(each.verdict not in done for each in self.definitions))


@group.command("plan", cls=Command, short_help="Say what may come next, and what would be done; nothing is changed")
def plan(  # noqa: PLR0913, PLR0917  (one parameter per option)
    name: Annotated[
        str | None,
        typer.Argument(metavar="[CLUSTER]", help="One Cluster.", autocompletion=completing.names_of("Cluster")),
    ] = None,
    version: Annotated[
        str, typer.Option("--kubernetes-version", metavar="VERSION", help="To which one, such as 1.36.3.")
    ] = "",
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    output: OutputOption = Output.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Judge versions by Kubernetes's skew policy and known hazards; the controllers say on paper what they would do."""
    from controllers.kernel.version import parse  # noqa: PLC0415

    if version and parse(version) is None:
        raise CliError(f"--kubernetes-version: {version[:80]!r} is no version", "Such as 1.36.3", USAGE)
    if name is not None and all_namespaces:
        raise CliError("-A is for all Clusters", "Leave the name out, or -A", USAGE)
    seen, plans = asyncio.run(_plan(Target(kubeconfig, context), name, version, namespace, all_namespaces))
    if output is Output.TEXT:
        _print(seen, plans)
    else:
        from nodewright.cli.upgrading.showing import own_data, plan_data  # noqa: PLC0415

        own = own_data(own_version(), seen.controllers, seen.definitions, seen.hindrances)
        show({"nodewright": own, "clusters": [plan_data(each) for each in plans]}, output)
    if seen.hindrances or any(each.refused for each in plans):
        raise typer.Exit(FAILED)


@group.command("apply", cls=Command, short_help="Upgrade what a cluster has of Nodewright to this version")
@with_flags
def apply(
    *,
    controllers: ControllerFlags,
    dry_run: DryRun = False,
    force: Force = False,
    timeout: Patience = 60,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Check versions, store objects anew where a definition needs it, then do what `nodewright install` does.

    Stopped at any moment and run again it goes on.
    """
    from nodewright.cli.installation.applying import How  # noqa: PLC0415

    objects = rendered(controllers)
    asyncio.run(_apply(Target(kubeconfig, context), How(dry_run, force, timeout), objects))


async def _plan(
    target: Target, name: str | None, version: str, namespace: str | None, everywhere: bool
) -> tuple[_Seen, list[Plan]]:
    from api.selectors import Selector  # noqa: PLC0415
    from nodewright.cli.commands.plan import Inputs, foresee  # noqa: PLC0415
    from nodewright.cli.upgrading.kubernetes import waits  # noqa: PLC0415
    from nodewright.cli.upgrading.planning import desired, on_paper, plan_of  # noqa: PLC0415

    connection = await connect(target)
    home = namespace or connection.namespace if name is not None else namespace
    async with client_of(connection) as client:
        seen = await _look(client)
        clusters = await _clusters(client, name, None if everywhere else home)
    wanted = [each for cluster in clusters for each in desired(cluster, version) if not waits(cluster, *each)]
    prospects = await foresee(Inputs(on_paper(wanted), target, None, Selector())) if wanted else []
    return seen, [plan_of(cluster, version, prospects) for cluster in clusters]


async def _look(client: KubeClient) -> _Seen:
    from nodewright.cli.upgrading.looking import controllers, definitions  # noqa: PLC0415
    from nodewright.cli.upgrading.own import hindrances  # noqa: PLC0415

    serving, found = await asyncio.gather(controllers(client), definitions(client))
    return _Seen(serving, found, hindrances(found, serving, own_version()))


async def _clusters(client: KubeClient, name: str | None, namespace: str | None) -> list[Cluster]:
    from controllers.kernel.refs import CLUSTER, MACHINE_CLASS, Key, key_of  # noqa: PLC0415
    from nodewright.cli.cluster.snapshot import now_view, objects_of, read_cluster  # noqa: PLC0415
    from nodewright.cli.upgrading.kubernetes import MEMBERS, cluster_of  # noqa: PLC0415
    from nodewright.cli.upgrading.providers import answers_by  # noqa: PLC0415
    from providers.base.registry import Registry  # noqa: PLC0415

    kinds = (CLUSTER, MACHINE_CLASS, *MEMBERS)
    cache = await read_cluster(client, kinds, dict.fromkeys(kinds, (Key(namespace or "", ""),)))
    keys = sorted(key_of(each) for each in objects_of(cache, CLUSTER))
    chosen = [key for key in keys if name is None or key.name == name]
    if name is not None and not chosen:
        there = ", ".join(key.name for key in keys)
        raise CliError(f"Cluster {namespace}/{name} does not exist", f"There are: {there}" if there else "")
    world = {kind: objects_of(cache, kind) for kind in MEMBERS}
    ask = answers_by(now_view(cache), Registry.installed())
    return [cluster_of(key, world, ask) for key in chosen]


def _print(seen: _Seen, plans: list[Plan]) -> None:
    from rich.text import Text  # noqa: PLC0415

    from nodewright.cli.dryrun.assumed_hosts import ASSUMPTION  # noqa: PLC0415
    from nodewright.cli.screen import console  # noqa: PLC0415
    from nodewright.cli.upgrading.showing import own_tree, plan_tree  # noqa: PLC0415
    from nodewright.reports.tree.drawing import sentences  # noqa: PLC0415

    out = console()
    trees = [own_tree(own_version(), seen.controllers, seen.definitions, seen.hindrances), *map(plan_tree, plans)]
    for number, tree in enumerate(trees):
        for line in [*([Text()] if number else []), *sentences(tree, out.width)]:
            out.print(line, soft_wrap=True)
    if any(each.moves for each in plans):
        out.print(Text(ASSUMPTION, "dim"), soft_wrap=True)
    _say_what_is_next(seen, plans)


def _say_what_is_next(seen: _Seen, plans: list[Plan]) -> None:
    commands = ["nodewright upgrade apply    # Nodewright itself"] if seen.is_behind else []
    commands += [command for each in plans for command in each.commands]
    if commands:
        say("\nNext:")
    for command in commands:
        say(f"  {command}")


async def _apply(target: Target, how: How, objects: list[dict[str, Any]]) -> None:
    from nodewright.cli.installation.everything import install_in  # noqa: PLC0415
    from nodewright.cli.upgrading.migrating import rewrite  # noqa: PLC0415

    async with client_of(await connect(target)) as client:
        seen = await _look(client)
        if seen.hindrances:
            raise CliError("; ".join(seen.hindrances), "`nodewright upgrade plan` shows all of it")
        before, after = _rewritten(seen)
        if how.dry_run:
            _say_rewrites(before, after)
        else:
            for each in before:
                await rewrite(client, each)
        await install_in(client, objects, how)
        for each in after if not how.dry_run else ():
            await rewrite(client, each)
    if not how.dry_run:
        say(f"Nodewright {own_version()} is installed")


def _rewritten(seen: _Seen) -> tuple[list[Definition], list[Definition]]:
    """Kinds whose objects are stored anew: before the definitions are installed, and after."""
    from nodewright.cli.upgrading.own import Verdict  # noqa: PLC0415

    before = [each for each in seen.definitions if each.verdict is Verdict.REWRITTEN_BEFORE]
    return before, [each for each in seen.definitions if each.verdict is Verdict.REWRITTEN_AFTER]


def _say_rewrites(before: list[Definition], after: list[Definition]) -> None:
    """For a dry run. Raises CliError where the definitions would be refused without the rewriting."""
    for each in (*before, *after):
        say(f"{each.name}: its objects would be stored anew as {each.storage} (dry run)")
    if before:
        raise CliError("the rest can't be tried before that", "Without --dry-run it is done first")
