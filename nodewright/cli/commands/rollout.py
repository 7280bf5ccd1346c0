"""``nodewright rollout``, and ``kubectl nodewright rollout``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodewright.cli import completing
from nodewright.cli.choosing import Labels, selector_of
from nodewright.cli.cluster.access import Target
from nodewright.cli.exits import FAILED, CliError
from nodewright.cli.help import Command
from nodewright.cli.options import Context, Kubeconfig, Namespace, duration_of
from nodewright.cli.rollout.access import Deployment, deployment, deployments
from nodewright.cli.rollout.naming import KIND, must_be_kind, name_of
from nodewright.cli.screen import say
from nodewright.cli.structured import Output, OutputOption, show

if TYPE_CHECKING:
    from api.selectors import Selector
    from controllers.kernel.refs import Obj
    from nodewright.cli.rollout.history import Revision

HELP = """Follow and steer the rollouts of a MachineDeployment, as `kubectl rollout` does those of a Deployment.

Exit code 0: done; 1: failed, refused, or the rollout failed; 2: wrong usage.
"""

group = typer.Typer(help=HELP, no_args_is_help=True)
Words = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME",
        help="md/workers, md workers or workers.",
        autocompletion=completing.names_of("MachineDeployment", "md", KIND),
    ),
]

SomeWords = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME",
        help="md/workers, md workers or workers; none, or md alone, with -l.",
        autocompletion=completing.names_of("MachineDeployment", "md", KIND),
    ),
]


@group.command("status", cls=Command, short_help="Follow a rollout until it is done or has failed")
def status(  # noqa: PLR0913, PLR0917  (one parameter per option)
    words: Words,
    watch: Annotated[bool, typer.Option("--watch/--no-watch", "-w", help="Follow it until it ends.")] = True,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="DURATION", help="How long to follow it (90s, 10m); 0s: for ever.")
    ] = "0s",
    revision: Annotated[
        int, typer.Option("--revision", metavar="N", min=0, help="Fail if it is not this one; 0: any.")
    ] = 0,
    wait_gone: Annotated[
        bool, typer.Option("--wait-gone", help="Follow it until old Machines are deleted, too.")
    ] = False,
    output: OutputOption = Output.TEXT,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Follow a rollout, a line for each step, until it is done (exit code 0) or has failed or timed out (1).

    It is done when the new Machines are available; what old ones wait for is said, and waited for with --wait-gone.
    """
    seconds = duration_of("--timeout", timeout).total_seconds() or None  # 0: for ever

    async def act(found: Deployment) -> None:
        from nodewright.cli.rollout.following import Following, follow  # noqa: PLC0415

        try:
            async with asyncio.timeout(seconds):
                await follow(found, Following(watch, revision, wait_gone, output))
        except TimeoutError:
            raise CliError(f'{KIND} "{found.name}" is not rolled out after {timeout}') from None

    _run(words, namespace, Target(kubeconfig, context), act)


@group.command("history", cls=Command, short_help="List revisions, or show the template of one")
def history(
    words: Words,
    revision: Annotated[int, typer.Option("--revision", metavar="N", min=0, help="Show the template of this one.")] = 0,
    output: OutputOption = Output.TEXT,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """List the revisions that can be returned to, or show the template of one as YAML."""

    async def act(found: Deployment) -> None:
        from nodewright.cli.rollout.history import revisions  # noqa: PLC0415

        _show_history(revisions(await found.read(), await found.sets()), revision, output)

    _run(words, namespace, Target(kubeconfig, context), act)


def _show_history(known: list[Revision], revision: int, output: Output) -> None:
    """``revision`` 0: all of them."""
    from nodewright.cli.rollout.history import one_of  # noqa: PLC0415

    if output is not Output.TEXT:
        wanted = [one_of(known, revision)] if revision else known
        show({"revisions": [asdict(one) for one in wanted]}, output)
    elif revision:
        _show(one_of(known, revision))
    else:
        _list(known)


@group.command("undo", cls=Command, short_help="Return to an earlier revision")
def undo(
    words: Words,
    to_revision: Annotated[
        int, typer.Option("--to-revision", metavar="N", min=0, help="Which one; 0: the one before.")
    ] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show its template and change nothing.")] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Write the template of an earlier revision into the spec.

    After an automatic rollback that is the one in force: then the spec says what is so.
    """

    async def act(found: Deployment) -> None:
        from nodewright.cli.rollout import history  # noqa: PLC0415

        async def decide(body: Obj) -> Mapping[str, Any]:
            if body["spec"].get("paused"):
                raise _paused(found.name, "undone")
            revision = history.to_return_to(body, history.revisions(body, await found.sets()), to_revision)
            if dry_run:
                _show(revision)
                return {}
            return history.undo(body, revision)

        changed = await found.change(decide, guarded=True)
        if not dry_run:
            say(f"{KIND}/{found.name} {'rolled back' if changed else 'skipped rollback (it has that template)'}")

    _run(words, namespace, Target(kubeconfig, context), act)


@group.command("pause", cls=Command, short_help="Stop a rollout; scaling goes on")
def pause(
    words: SomeWords = None,
    labels: Labels = "",
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Stop a rollout where it is. Scaling goes on, and templates may be edited without anything rolling."""
    _run_each(Which(words, labels, namespace, Target(kubeconfig, context)), _setting_paused(True))


@group.command("resume", cls=Command, short_help="Let a paused rollout go on")
def resume(
    words: SomeWords = None,
    labels: Labels = "",
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Let a paused rollout go on."""
    _run_each(Which(words, labels, namespace, Target(kubeconfig, context)), _setting_paused(False))


@group.command("restart", cls=Command, short_help="Replace all Machines by new ones of the same template")
def restart(
    words: SomeWords = None,
    labels: Labels = "",
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Replace all Machines by new ones of the same template, within the limits of a rollout."""

    async def act(found: Deployment) -> None:
        await found.change(_restarted_now)
        say(f"{KIND}/{found.name} restarted")

    _run_each(Which(words, labels, namespace, Target(kubeconfig, context)), act)


async def _restarted_now(body: Obj) -> Mapping[str, Any]:
    from api import names  # noqa: PLC0415
    from controllers.kernel.conditions import format_time  # noqa: PLC0415

    if body["spec"].get("paused"):
        raise _paused(body["metadata"]["name"], "restarted")
    stamp = {names.RESTARTED_AT_ANNOTATION: format_time(datetime.now(UTC))}
    return {"spec": {"template": {"metadata": {"annotations": stamp}}}}


@dataclass(frozen=True, slots=True)
class Which:
    """One MachineDeployment by name, or those of a namespace that have such labels."""

    words: list[str] | None
    labels: str
    namespace: str | None
    target: Target


def _run_each(which: Which, act: Callable[[Deployment], Awaitable[None]]) -> None:
    """As kubectl does: what one of them refuses is said, and the others are done all the same; then the code is 1.

    Raises CliError for one that is named, and where no object has such labels.
    """
    words = which.words or []
    if not which.labels:
        _run(words, which.namespace, which.target, act)
        return
    must_be_kind(words)
    if asyncio.run(_failures(which, selector_of(which.labels), act)):
        raise typer.Exit(FAILED)


async def _failures(which: Which, selector: Selector, act: Callable[[Deployment], Awaitable[None]]) -> int:
    """Act on all that have the labels, and count those that refused it."""
    failed = 0
    async with deployments(which.target, which.namespace, selector) as chosen:
        for each in chosen:
            try:
                await act(each)
            except CliError as error:
                failed += 1
                say(f"nodewright: {error.line()}", err=True)
    return failed


def _run(words: list[str], namespace: str | None, target: Target, act: Callable[[Deployment], Awaitable[None]]) -> None:
    name = name_of(words)

    async def running() -> None:
        async with deployment(target, namespace, name) as found:
            await act(found)

    asyncio.run(running())


def _setting_paused(paused: bool) -> Callable[[Deployment], Awaitable[None]]:
    async def decide(body: Obj) -> Mapping[str, Any]:
        if bool(body["spec"].get("paused")) == paused:
            title = f'{KIND} "{body["metadata"]["name"]}"'
            raise CliError(f"{title} is already paused" if paused else f"{title} is not paused")
        return {"spec": {"paused": paused}}

    async def act(found: Deployment) -> None:
        await found.change(decide)
        say(f"{KIND}/{found.name} {'paused' if paused else 'resumed'}")

    return act


def _list(known: list[Revision]) -> None:
    from nodewright.cli.rollout.showing import lines  # noqa: PLC0415
    from nodewright.cli.screen import console  # noqa: PLC0415

    out = console()
    for line in lines(known, out.width):
        out.print(line, soft_wrap=True)


def _show(revision: Revision) -> None:
    import yaml  # noqa: PLC0415

    say(f"# revision {revision.number}, MachineSet {revision.machine_set}")
    say(yaml.safe_dump(dict(revision.template), sort_keys=False).rstrip())


def _paused(name: str, verb: str) -> CliError:
    return CliError(f'{KIND} "{name}" is paused and can\'t be {verb}', f"First `nodewright rollout resume md/{name}`")
