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
    from nodewright.cli.installation.manifests import Choice
    from nodewright.runtime.kube.client import KubeClient

HELP = """Install the CustomResourceDefinitions into a cluster by server-side apply, and wait until they are served.

With `--controllers --image=REGISTRY/nodewright:0.1.0` also what runs there: namespace, rights and Deployments of
`deploy/`, rendered by `kubectl kustomize`; `--print` shows all of it and reaches no cluster. Safe to repeat: it also
upgrades. Exit code 0: installed; 1: failed; 2: wrong usage.
"""

_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class _How:
    dry_run: bool
    force: bool
    wait_seconds: float


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


@with_flags
def command(
    *,
    controllers: ControllerFlags,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Let the server check everything, change nothing.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Take over fields that others have applied.")] = False,
    timeout: Annotated[
        float,
        typer.Option("--timeout", metavar="SECONDS", min=0, help="Seconds to wait until all is served; 0: don't."),
    ] = 60,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    objects = _rendered(controllers)
    if controllers.print_:
        from api.yamltext import dump  # noqa: PLC0415

        say("---\n".join(dump(obj) for obj in objects), nl=False)
        return
    asyncio.run(_install(Target(kubeconfig, context), _How(dry_run, force, timeout), objects))


def _rendered(controllers: ControllerFlags) -> list[dict[str, Any]]:
    """Before any cluster is reached: what is wrong with the flags is no matter of it."""
    choice = controllers.choice()
    if choice is None:
        return []
    from nodewright.cli.installation.manifests import render  # noqa: PLC0415

    return render(choice)


async def _install(target: Target, how: _How, objects: list[dict[str, Any]]) -> None:
    from nodewright.crds import load_crds  # noqa: PLC0415

    connection = await connect(target)
    async with client_of(connection) as client:
        for crd in load_crds():
            await _apply(client, crd, how)
        if how.wait_seconds and not how.dry_run:
            await _until_served(client, [crd["metadata"]["name"] for crd in load_crds()], how.wait_seconds)
        if objects:
            from nodewright.cli.installation.applying import How, put  # noqa: PLC0415

            rest = [obj for obj in objects if obj["kind"] != "CustomResourceDefinition"]
            await put(client, rest, How(how.dry_run, how.force, how.wait_seconds))
    if not how.dry_run and not objects:
        say("ready: `kubectl api-resources --api-group=cluster.k8s.io` lists them, `nodewright run` serves them")


async def _apply(client: KubeClient, crd: dict[str, Any], how: _How) -> None:
    from controllers.kernel.refs import Key  # noqa: PLC0415
    from nodewright.runtime.kube.errors import ApiError  # noqa: PLC0415

    name = crd["metadata"]["name"]
    try:
        before = await _find(client, name)
        if before is not None and not how.force and _is_others(crd, before):
            say(_left_alone(crd, before))
            return
        after = await client.apply(_crds(), Key("", name), crd, force=how.force, dry_run=how.dry_run)
    except ApiError as error:
        if error.conflict:
            hint = "Take them over with --force if that is meant"
            raise CliError(f"{name}: others own some fields: {error.message}", hint) from error
        raise
    say(f"{name} {_what_happened(before, after)}{' (dry run)' if how.dry_run else ''}")


def _is_others(crd: dict[str, Any], before: dict[str, Any]) -> bool:
    """A kind of another group that somebody else installed: it may be newer than what we know."""
    from api import names  # noqa: PLC0415
    from nodewright.runtime.kube.client import FIELD_MANAGER  # noqa: PLC0415

    managers = {entry.get("manager") for entry in before["metadata"].get("managedFields") or ()}
    group = str(crd["spec"]["group"])
    ours = group == names.GROUP or group.endswith(f".{names.OWN_DOMAIN}")
    return not ours and FIELD_MANAGER not in managers


def _left_alone(crd: dict[str, Any], before: dict[str, Any]) -> str:
    name = crd["metadata"]["name"]
    needed = next(version["name"] for version in crd["spec"]["versions"] if version.get("storage"))
    managers = sorted({str(entry.get("manager")) for entry in before["metadata"].get("managedFields") or ()})
    served = [version["name"] for version in before["spec"]["versions"] if version.get("served")]
    message = f"{name} left as it is: installed by {', '.join(managers) or 'somebody else'}; --force replaces it"
    return message if needed in served else f"{message} (it serves {', '.join(served)}, and {needed} is needed)"


def _what_happened(before: dict[str, Any] | None, after: dict[str, Any]) -> str:
    if before is None:
        return "created"
    return "unchanged" if before.get("spec") == after.get("spec") else "configured"


async def _find(client: KubeClient, name: str) -> dict[str, Any] | None:
    from controllers.kernel.refs import Key  # noqa: PLC0415
    from nodewright.runtime.kube.errors import ApiError  # noqa: PLC0415

    try:
        return await client.get(_crds(), Key("", name))
    except ApiError as error:
        if error.not_found:
            return None
        raise


async def _until_served(client: KubeClient, names: list[str], seconds: float) -> None:
    waiting = list(names)
    try:
        async with asyncio.timeout(seconds):
            while waiting:
                waiting = [name for name in waiting if not _established(await _find(client, name))]
                if waiting:
                    await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError as error:
        hint = f"See `kubectl describe crd {waiting[0]}`"
        raise CliError(f"not served after {seconds:.0f} s: {', '.join(waiting)}", hint) from error


def _established(crd: dict[str, Any] | None) -> bool:
    conditions = ((crd or {}).get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions)


def _crds() -> Any:
    from controllers.kernel.refs import Kind  # noqa: PLC0415

    return Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
