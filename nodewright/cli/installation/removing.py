"""Take the controllers away, and the kinds, but never while Machines exist: only the controllers can let them go."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from api import names
from controllers.kernel.refs import MACHINE, Key, Kind, key_of, ref_of
from nodewright.cli.exits import CliError
from nodewright.cli.installation.applying import find
from nodewright.cli.installation.kinds import CRDS, DEPLOYMENTS, DISRUPTION_BUDGETS, KINDS
from nodewright.cli.installation.manifests import PART_OF
from nodewright.cli.screen import say
from nodewright.crds import load_crds
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError

_POLL_SECONDS = 0.5
_NUDGE_SECONDS = 5.0
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Removal:
    """``crds``: the kinds too, with what is left of their objects."""

    crds: bool
    dry_run: bool
    wait_seconds: float


async def remove(client: KubeClient, how: Removal) -> None:
    """Safe to repeat. Raises CliError while there are Machines, or if something is still there when time is up."""
    await refuse_while_there_are_machines(client)
    for kind in reversed(KINDS):
        if kind is not CRDS:
            found = [obj async for obj in _ours(client, kind)]
            for obj in found:
                await _delete(client, kind, obj, how)
            if kind is DEPLOYMENTS and not how.dry_run:
                await _until_gone(client, kind, [key_of(obj) for obj in found], how.wait_seconds)
    if how.crds:
        await refuse_while_there_are_machines(client)  # one may have come while the controllers went
        await _delete_crds(client, how)
    elif not how.dry_run:
        say("the kinds and their objects stay; `nodewright uninstall --crds` removes them too")


async def stop_controllers(client: KubeClient) -> None:
    """Take their pods away from a cluster that is taken down itself, and the budget that would hold up its last drain.

    Safe to repeat; all else of the installation goes with the cluster. Raises CliError while there are Machines.
    """
    await refuse_while_there_are_machines(client)
    for kind in (DEPLOYMENTS, DISRUPTION_BUDGETS):
        async for obj in _ours(client, kind):
            await _delete(client, kind, obj, Removal(crds=False, dry_run=False, wait_seconds=0))


async def refuse_while_there_are_machines(client: KubeClient) -> None:
    """Raises CliError that names some."""
    found = [str(key_of(obj)) async for obj in _all(client, MACHINE)]
    if not found:
        return
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    raise CliError(
        f"there {'is' if len(found) == 1 else 'are'} {len(found)} Machine{'s' if len(found) > 1 else ''}: "
        f"{', '.join(found[:_SHOWN])}{more}",
        "Only the controllers can remove their hosts: delete what owns them first, "
        "`kubectl delete machinedeployments,machinesets,machines --all -A`, or scale the Deployment to 0 to keep them",
    )


async def _delete_crds(client: KubeClient, how: Removal) -> None:
    """Only those that are ours: a kind of another group may have other users."""
    deleted = []
    for name in (crd["metadata"]["name"] for crd in load_crds()):
        found = await find(client, CRDS, Key("", name))
        if found is None:
            continue
        group = str(found["spec"]["group"])
        if group == names.GROUP or group.endswith(f".{names.OWN_DOMAIN}"):
            await _delete(client, CRDS, found, how)
            deleted.append(key_of(found))
        else:
            say(f"{CRDS.name} {name} stays: others may use it")
    await _until_gone(client, CRDS, [] if how.dry_run else deleted, how.wait_seconds)


async def _delete(client: KubeClient, kind: Kind, obj: dict[str, Any], how: Removal) -> None:
    title = f"{kind.name} {key_of(obj)}"
    if how.dry_run:
        say(f"{title} would be deleted (dry run)")
        return
    try:
        await client.delete(ref_of(kind, obj))
    except ApiError as error:
        if not error.not_found:
            raise
    say(f"{title} deleted")


async def _until_gone(client: KubeClient, kind: Kind, keys: list[Key], seconds: float) -> None:
    waiting = keys
    left: list[dict[str, Any]] = []
    nudges = 0
    began = time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            while waiting:
                left = [obj for key in waiting if (obj := await find(client, kind, key)) is not None]
                waiting = [key_of(obj) for obj in left]
                if kind is CRDS and time.monotonic() - began > _NUDGE_SECONDS * (nudges + 1):
                    nudges += 1
                    for obj in left:
                        await _nudge(client, obj, nudges)
                if waiting:
                    await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError as error:
        still_there = f"is still there after {seconds:.0f} s{_why(left)}"
        raise CliError(f"{kind.name} {waiting[0]} {still_there}", _hint(kind, waiting[0])) from error


def _hint(kind: Kind, key: Key) -> str:
    where = f" -n {key.namespace}" if key.namespace else ""
    return f"See `kubectl get {kind.plural} {key.name}{where} -o yaml`, and run this again"


async def _nudge(client: KubeClient, crd: dict[str, Any], number: int) -> None:
    """Have the API server look again at a definition that it is to remove.

    Its controller (apiextensions-apiserver, pkg/controller/finalizer/crd_finalizer.go) writes why it failed into the
    Terminating condition. If that write makes its next attempt conflict, it gives up until its next resync after five
    minutes, since a change of this condition alone does not wake it. Any other change does.
    """
    body = {"metadata": {"annotations": {names.REMOVAL_ANNOTATION: str(number)}}}
    try:
        await client.merge_patch(ref_of(CRDS, crd), body)
    except ApiError as error:
        if not (error.not_found or error.conflict):
            raise


def _why(left: list[dict[str, Any]]) -> str:
    """What the API server says of the first one, "" if nothing."""
    conditions = (left[0].get("status") or {}).get("conditions") or [] if left else []
    messages = [str(each.get("message") or "") for each in conditions if each.get("type") == "Terminating"]
    return f": {messages[0]}" if messages and messages[0] else ""


async def _ours(client: KubeClient, kind: Kind) -> AsyncIterator[dict[str, Any]]:
    async for obj in _all(client, kind):
        if (obj["metadata"].get("labels") or {}).get(PART_OF) == "nodewright":
            yield obj


async def _all(client: KubeClient, kind: Kind) -> AsyncIterator[dict[str, Any]]:
    """In all namespaces; nothing for a kind that is not served."""
    continue_ = ""
    while True:
        try:
            page = await client.list_page(kind, continue_=continue_)
        except ApiError as error:
            if error.not_found:
                return
            raise
        for obj in page.items:
            yield obj
        continue_ = page.continue_
        if not continue_:
            return
