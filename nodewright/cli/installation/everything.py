"""The kinds, and with them what else is given, into one cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from api import names
from controllers.kernel.refs import Key
from nodewright.apiserver.values import OWN_MANAGER
from nodewright.cli.exits import CliError
from nodewright.cli.installation.applying import How, find, put
from nodewright.cli.installation.kinds import CRDS
from nodewright.cli.screen import say
from nodewright.crds import load_crds
from nodewright.runtime.kube.client import FIELD_MANAGER, KubeClient
from nodewright.runtime.kube.errors import ApiError

_POLL_SECONDS = 0.2
USUAL = How(dry_run=False, force=False, wait_seconds=300.0)


async def install_in(client: KubeClient, objects: Sequence[dict[str, Any]], how: How = USUAL) -> None:
    """Safe to repeat. Raises CliError for a conflict, and for what is not served or available in time."""
    crds = load_crds()
    for crd in crds:
        await _apply(client, crd, how)
    if how.wait_seconds and not how.dry_run:
        await _until_served(client, [crd["metadata"]["name"] for crd in crds], how.wait_seconds)
    if objects:
        await put(client, [obj for obj in objects if obj["kind"] != "CustomResourceDefinition"], how)


async def _apply(client: KubeClient, crd: dict[str, Any], how: How) -> None:
    name = crd["metadata"]["name"]
    try:
        before = await find(client, CRDS, Key("", name))
        if before is not None and not how.force and is_others(crd, before):
            say(_left_alone(crd, before))
            return
        after = await client.apply(CRDS, Key("", name), crd, force=how.force, dry_run=how.dry_run)
    except ApiError as error:
        if error.conflict:
            hint = "Take them over with --force if that is meant"
            raise CliError(f"{name}: others own some fields: {error.message}", hint) from error
        raise
    say(f"{name} {_what_happened(before, after)}{' (dry run)' if how.dry_run else ''}")


def is_others(crd: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """A kind of another group that somebody else installed: it may be newer than what we know.

    Neither ``nodewright install`` has put it there, nor the embedded API server of ``nodewright up``.
    """
    managers = {entry.get("manager") for entry in before["metadata"].get("managedFields") or ()}
    group = str(crd["spec"]["group"])
    ours = group == names.GROUP or group.endswith(f".{names.OWN_DOMAIN}")
    return not ours and managers.isdisjoint((FIELD_MANAGER, OWN_MANAGER))


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


async def _until_served(client: KubeClient, names: list[str], seconds: float) -> None:
    waiting = list(names)
    try:
        async with asyncio.timeout(seconds):
            while waiting:
                waiting = [name for name in waiting if not _established(await find(client, CRDS, Key("", name)))]
                if waiting:
                    await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError as error:
        hint = f"See `kubectl describe crd {waiting[0]}`"
        raise CliError(f"not served after {seconds:.0f} s: {', '.join(waiting)}", hint) from error


def _established(crd: dict[str, Any] | None) -> bool:
    conditions = ((crd or {}).get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions)
