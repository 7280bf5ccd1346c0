"""Which volumes are still attached to a Node that is about to lose its host? They must be detached cleanly first.

A host that is deleted with a volume attached may leave it locked for minutes, or its data torn (cluster-api#10661).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from controllers.drain.context import DrainContext, claims_of
from controllers.kernel.conditions import some_of
from controllers.kernel.refs import Obj, spec_of

_CSI = "kubernetes.io/csi/"
_MOST_NAMES = 5


@dataclass(frozen=True, slots=True)
class Detaching:
    """``started_at``: since when volumes are waited for, None: not yet; ``timeout`` None: for ever."""

    node: Obj
    drain_context: DrainContext
    now: datetime
    started_at: datetime | None = None
    timeout: timedelta | None = None


def waits_for(detaching: Detaching) -> str:
    """The volumes by name; "" if there are none, or time is up."""
    if detaching.timeout and detaching.started_at and detaching.now >= detaching.started_at + detaching.timeout:
        return ""
    return some_of(list(attached(detaching.node, detaching.drain_context)), _MOST_NAMES)


def attached(node: Obj, drain_context: DrainContext) -> Iterator[str]:
    """Names of what is attached, by VolumeAttachments and by the Node's own status.

    Volumes of pods that are still on the Node are left out: the pod stays on purpose or was given up, so its volume
    will never be detached.
    """
    kept = _of_pods_that_stay(drain_context)
    kept_handles = {_unique_name(volume) for volume in kept.values()} - {""}
    listed: set[str] = set()
    for attachment in drain_context.attachments:
        spec = spec_of(attachment)
        name = str((spec.get("source") or {}).get("persistentVolumeName") or attachment["metadata"]["name"])
        if name not in kept:
            listed.add(name)
    yield from sorted(listed)
    by_attachment = len(drain_context.attachments)
    for volume in (node.get("status") or {}).get("volumesAttached") or ():
        name = str(volume.get("name") or "")
        # A CSI volume has both an entry here and a VolumeAttachment: it is named once.
        if name in kept_handles or (by_attachment and name.startswith(_CSI)):
            continue
        yield name


def _of_pods_that_stay(drain_context: DrainContext) -> Mapping[str, Obj]:
    """PersistentVolumes by name."""
    claims = {claim for pod in drain_context.pods for claim in claims_of(pod)}
    return {v["metadata"]["name"]: v for claim, v in drain_context.volumes.items() if claim in claims}


def _unique_name(volume: Obj) -> str:
    """What the Node's status calls it; "" for one that is not CSI's."""
    csi: Mapping[str, Any] = spec_of(volume).get("csi") or {}
    return f"{_CSI}{csi.get('driver')}^{csi.get('volumeHandle')}" if csi else ""
