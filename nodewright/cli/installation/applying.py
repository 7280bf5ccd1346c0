"""Put rendered objects in place by server-side apply, one after the other, and wait for the Deployments."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from controllers.kernel.refs import Key, Kind, key_of
from nodewright.cli.exits import CliError
from nodewright.cli.installation.kinds import DEPLOYMENTS, POLICIES, kind_of
from nodewright.cli.screen import say
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError

_POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class How:
    """``force`` takes over fields that others have applied. ``wait_seconds`` 0: nothing is waited for."""

    dry_run: bool
    force: bool
    wait_seconds: float


async def put(client: KubeClient, objects: Sequence[dict[str, Any]], how: How) -> None:
    """Safe to repeat. Raises CliError for a conflict, and for a Deployment that is not available in time."""
    for obj in objects:
        await _apply(client, obj, how)
    if how.dry_run or not how.wait_seconds:
        return
    for obj in objects:
        if kind_of(obj) is DEPLOYMENTS:
            await _until_available(client, key_of(obj), how.wait_seconds)


async def find(client: KubeClient, kind: Kind, key: Key) -> dict[str, Any] | None:
    """None: it is not there. Raises ApiError."""
    try:
        return await client.get(kind, key)
    except ApiError as error:
        if error.not_found:
            return None
        raise


def _refusal(kind: Kind, title: str, error: ApiError) -> CliError | None:
    """What a person can do about it; None if nobody knows."""
    if error.conflict:
        hint = "Take them over with --force if that is meant"
        return CliError(f"{title}: others own some fields: {error.message}", hint)
    if error.not_found:
        hint = f"The API server does not serve {kind.plural} of {kind.api_version}, or its namespace is gone"
        return CliError(f"{title} can't be applied: {error.message}", hint)
    return None


async def _apply(client: KubeClient, obj: dict[str, Any], how: How) -> None:
    kind, key = kind_of(obj), key_of(obj)
    title = f"{kind.name} {key}"
    before = await find(client, kind, key)
    try:
        after = await client.apply(kind, key, obj, force=how.force, dry_run=how.dry_run)
    except ApiError as error:
        if error.not_found and kind in POLICIES:
            say(f"{title} left out: the API server has no such policies (they came with Kubernetes 1.30)")
            return
        if how.dry_run and error.not_found and key.namespace and before is None:
            say(f"{title} would be created with its namespace (dry run)")
            return
        if (refusal := _refusal(kind, title, error)) is not None:
            raise refusal from error
        raise
    say(f"{title} {_what_happened(before, after)}{' (dry run)' if how.dry_run else ''}")


def _what_happened(before: dict[str, Any] | None, after: dict[str, Any]) -> str:
    if before is None:
        return "created"
    same = before["metadata"].get("resourceVersion") == after["metadata"].get("resourceVersion")
    return "unchanged" if same else "configured"


async def _until_available(client: KubeClient, key: Key, seconds: float) -> None:
    why = "not seen yet"
    try:
        async with asyncio.timeout(seconds):
            while why:
                why = _what_is_missing(await find(client, DEPLOYMENTS, key))
                if why:
                    await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError as error:
        hint = f"See `kubectl -n {key.namespace} describe deployment {key.name}` and its pods"
        raise CliError(f"Deployment {key} is not available after {seconds:.0f} s: {why}", hint) from error
    say(f"Deployment {key} is available")


def _what_is_missing(deployment: dict[str, Any] | None) -> str:
    """ "" once every replica is of the current template and available, as `kubectl rollout status` decides."""
    if deployment is None:
        return "it is gone"
    status, wanted = deployment.get("status") or {}, deployment["spec"].get("replicas", 1)
    if status.get("observedGeneration", 0) < deployment["metadata"].get("generation", 0):
        return "its controller has not seen it yet"
    updated, available = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
    if updated < wanted or available < wanted or status.get("replicas", 0) > updated:
        return f"{available} of {wanted} replicas available, {updated} of this version"
    return ""
