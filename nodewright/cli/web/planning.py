"""Answers of the web view that need the dry run or the autoscaler, which gateways don't import."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nodewright.gateways.web.source import Source

MOST_OBJECTS = 500
MOST_PODS, MOST_GROUPS = 100, 50
"""Of the matrix: each cell costs a look at the predicates."""


async def plan(source: Source, body: Mapping[str, Any]) -> Any:
    """What would happen if ``manifests`` were applied; "": what happens next anyway. Raises AskError, KubeError."""
    from nodewright.cli.cluster.snapshot import read_cluster  # noqa: PLC0415
    from nodewright.gateways.web.answers import AskError  # noqa: PLC0415
    from nodewright.runtime.settings.wiring import kinds_of, on_request  # noqa: PLC0415
    from nodewright.runtime.settings.wiring import reconcilers as every_reconciler  # noqa: PLC0415

    manifests = body.get("manifests")
    if not isinstance(manifests, str):
        raise AskError("manifests is a text")
    objects = await asyncio.to_thread(_checked, manifests)
    reconcilers = (on_request()["controlplane"](), *every_reconciler())
    cache = await read_cluster(source.client, kinds_of(reconcilers), _parts(source, kinds_of(reconcilers)))
    return await asyncio.to_thread(_foreseen, cache, reconcilers, (objects, source.namespace or "default"))


def _parts(source: Source, kinds: Any) -> Any:
    from controllers.kernel.refs import Key  # noqa: PLC0415

    return {kind: (Key(source.namespace, ""),) for kind in kinds if kind.namespaced} if source.namespace else None


def _checked(text: str) -> tuple[Mapping[str, Any], ...]:
    """The objects of the text, defaults filled in. Raises AskError with each fault's line and field."""
    from nodewright.cli.commands.validate import check_text  # noqa: PLC0415
    from nodewright.cli.manifests.checks import Checker, with_defaults  # noqa: PLC0415
    from nodewright.cli.manifests.documents import Document, read  # noqa: PLC0415
    from nodewright.cli.manifests.findings import in_order  # noqa: PLC0415
    from nodewright.gateways.web.answers import AskError  # noqa: PLC0415

    if not text.strip():
        return ()
    findings = in_order(check_text(Checker(), "manifest", text))
    if findings:
        raise AskError("\n".join(finding.line() for finding in findings[:20]), 422)
    documents = [part for part in read(text) if isinstance(part, Document)]
    objects = tuple(obj for document in documents for obj in with_defaults(document.data))
    if len(objects) > MOST_OBJECTS:
        raise AskError(f"these are {len(objects)} objects; a plan takes {MOST_OBJECTS}")
    return objects


def _foreseen(cache: Any, reconcilers: Any, asked: tuple[tuple[Mapping[str, Any], ...], str]) -> Any:
    from nodewright.cli.dryrun.foresee import DryRun  # noqa: PLC0415
    from nodewright.cli.dryrun.in_memory import InMemoryCluster  # noqa: PLC0415
    from nodewright.cli.dryrun.showing import as_data  # noqa: PLC0415

    objects, namespace = asked
    in_memory = InMemoryCluster(cache)
    dryrun = DryRun(in_memory, reconcilers)
    by_name = {kind.name: kind for kind in cache.stores}
    for obj in objects:
        kind = by_name.get(obj["kind"])
        if kind is not None:
            in_memory.apply(kind, {**obj, "metadata": {"namespace": namespace, **obj["metadata"]}})
    found = [
        each for each in as_data(dryrun.foresee()) if any(not a["quiet"] for a in each["actions"]) or each["waitsFor"]
    ]
    return {"objects": found[:MOST_OBJECTS], "leftOut": max(0, len(found) - MOST_OBJECTS), "applied": len(objects)}


async def autoscaler(source: Source, query: Mapping[str, str]) -> Any:
    """Pods that wait × groups: which group would take which pod, and why not. Raises KubeError."""
    from nodewright.cli.web.matrix import matrix  # noqa: PLC0415

    return await matrix(source)


async def what_if(source: Source, body: Mapping[str, Any]) -> Any:
    """The same if some pods more waited, and groups had other largest sizes. Raises AskError, KubeError."""
    from nodewright.cli.web.matrix import matrix  # noqa: PLC0415
    from nodewright.cli.web.whatif import WhatIfError, read  # noqa: PLC0415
    from nodewright.gateways.web.answers import AskError  # noqa: PLC0415

    try:
        return await matrix(source, read(body))
    except WhatIfError as error:
        raise AskError(str(error), 422) from error
