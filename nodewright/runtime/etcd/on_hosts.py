"""A snapshot of etcd that a member's own host takes and keeps, by its provider's way into it (docs/adr/0072)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from controllers.bootstrap.etcd_snapshot import saved_of
from controllers.kernel.actions import TakeEtcdSnapshot
from controllers.kernel.etcd_snapshots import HostTarget, SnapshotTaken
from nodewright.runtime.etcd.ways import Locate
from providers.base.capabilities import RunsScripts
from providers.base.errors import ProviderError

LIMIT = 1800.0
"""Seconds. etcd's own limit of a database is 8 GiB: at 10 MB/s that takes 14 minutes."""
_MOST_TEXT = 500


class NotOnHost(Exception):
    """Why the host saved nothing."""


class Unable(NotOnHost):
    """Its provider runs nothing on hosts."""


async def saved_by(
    target: HostTarget, action: TakeEtcdSnapshot, locate: Locate, now: Callable[[], datetime]
) -> SnapshotTaken:
    """Raises NotOnHost."""
    found = locate(target.host.uid, action.cluster.namespace)
    if found is None:
        raise NotOnHost(f"the host of Machine {target.machine} is not known to its provider")
    provider, host = found
    if not isinstance(provider, RunsScripts):
        text = "runs nothing on its hosts, so spec.etcd.snapshot.path can't be used for this step: name a bucket (s3)"
        raise Unable(f"the provider of Machine {target.machine} {text}")
    try:
        printed = await provider.run_script(host, target.script, LIMIT)
    except ProviderError as error:
        raise NotOnHost(f"Machine {target.machine}: {_text(error.message)}") from None
    saved = saved_of(printed)
    if saved is None:
        raise NotOnHost(f"Machine {target.machine}: no etcd of kubeadm runs on its host")
    location = f"{target.host.name}:{saved.path}"
    return SnapshotTaken(action.key, now() - saved.age, saved.size_bytes, saved.revision, location, target.machine)


def _text(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text[:_MOST_TEXT])
