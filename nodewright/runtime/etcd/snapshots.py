"""Snapshots of etcd in buckets and on hosts: taken in the background, one for each Cluster at a time.

    TakeEtcdSnapshot -> a healthy member -> its lines -> SHA-256 -> age -> parts of an object -> what the plan reads

Of those on hosts nothing comes here: a member's own host saves its database (``saved_by``). Nothing is written on this
machine. A process that ends leaves no object, and the snapshot is taken anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from contextvars import Context
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog

from controllers.kernel.actions import TakeEtcdSnapshot
from controllers.kernel.etcd_snapshots import (
    HostTarget,
    SnapshotFailed,
    SnapshotRead,
    SnapshotTaken,
    SnapshotTarget,
    SnapshotUnderWay,
)
from controllers.kernel.refs import SECRET, Key, mapping
from nodewright.runtime.etcd.bucket import BucketError, bucket_of, upload
from nodewright.runtime.etcd.gateway import Gateway, GatewayError, NotReadable, Status
from nodewright.runtime.etcd.on_hosts import NotOnHost, Unable, saved_by
from nodewright.runtime.etcd.reading import CLIENT_PORT, NoMember, best_member
from nodewright.runtime.etcd.sealing import SealingError, recipients_of, sealed
from nodewright.runtime.etcd.snapshot_stream import SnapshotReader
from nodewright.runtime.etcd.ways import Locate, nowhere
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError, KubeError
from nodewright.runtime.kube.servers import ServerPolicy

_log = structlog.get_logger("nodewright.etcd")

AT_ONCE = 2
"""Snapshots under way at once: each takes some 50 MiB, however large the database is."""
LIMIT = 3600.0
"""Seconds for one."""
RETRY = timedelta(seconds=60)
MOST_KNOWN = 10_000
"""Clusters of which the last one is remembered."""

OpenGateway = Callable[[Key], "AbstractAsyncContextManager[Gateway]"]


class NotSaved(Exception):
    """Why there is no snapshot: what was asked for, or the Secret of the bucket."""


@dataclass(frozen=True, slots=True)
class Means:
    """``gateway`` opens one to the members of a Cluster, or raises NotReadable. ``servers``: which buckets may be.
    ``locate``: the hosts of Machines."""

    client: KubeClient
    gateway: OpenGateway
    now: Callable[[], datetime]
    servers: ServerPolicy
    port: int = CLIENT_PORT
    locate: Locate = nowhere


class EtcdSnapshots:
    """``SnapshotsView``. One event loop; ``close`` at the end."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._known: dict[Key, SnapshotRead] = {}
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._closed = False

    def snapshot(self, cluster: Key) -> SnapshotRead | None:
        return self._known.get(cluster)

    def submit(self, action: TakeEtcdSnapshot) -> bool:
        """False while one of this Cluster is under way."""
        if self._closed or action.cluster in self._tasks:
            return False
        while len(self._known) >= MOST_KNOWN:
            self._known.pop(next(iter(self._known)))
        self._known[action.cluster] = SnapshotUnderWay(action.key)
        name = f"take a snapshot of etcd of {action.cluster}"
        self._tasks[action.cluster] = asyncio.create_task(self._run(action), name=name, context=Context())
        return True

    async def close(self, grace: float) -> None:
        """What is under way is broken off: an upgrade waits for it, nothing else."""
        self._closed = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=max(grace, 0.1))

    async def _run(self, action: TakeEtcdSnapshot) -> None:
        log = _log.bind(cluster=str(action.cluster))
        try:
            async with self._turn, asyncio.timeout(LIMIT):
                found: SnapshotRead = await self._take(action)
            log.info("a snapshot of etcd was taken", why=action.why)
        except Exception as error:
            why = self._why(error)
            log.warning("no snapshot of etcd was taken", why=why)
            found = SnapshotFailed(action.key, why, self._means.now() + RETRY, isinstance(error, Unable))
        finally:
            del self._tasks[action.cluster]
        self._known[action.cluster] = found

    @staticmethod
    def _why(error: Exception) -> str:
        if isinstance(error, NotReadable | NotSaved | NotOnHost | NoMember | BucketError | SealingError | GatewayError):
            return str(error)
        if isinstance(error, TimeoutError):
            return f"it took longer than {LIMIT / 60:.0f} minutes"
        return type(error).__name__

    async def _take(self, action: TakeEtcdSnapshot) -> SnapshotTaken:
        target = action.target
        if isinstance(target, HostTarget):
            return await saved_by(target, action, self._means.locate, self._means.now)
        return await self._upload(action, target)

    async def _upload(self, action: TakeEtcdSnapshot, target: SnapshotTarget) -> SnapshotTaken:
        means = self._means
        if bool(target.recipients) is target.plain:
            raise NotSaved("spec.etcd.snapshot.s3: name recipients, or set plain to true, not both")
        bucket = bucket_of(await self._data(target.secret), str(target.secret), means.servers)
        recipients = recipients_of(target.recipients)
        async with means.gateway(action.cluster) as gateway:
            url, status = await best_member(gateway, action.hosts, means.port)
            at = means.now()
            file = _file(at, status, action.before) + (".age" if recipients else "")
            name = f"{bucket.folder}{action.cluster.namespace}/{action.cluster.name}/{file}"
            reader = SnapshotReader(gateway.snapshot(url))
            content: AsyncIterator[bytes] = reader.parts()
            async with aclosing(sealed(content, recipients) if recipients else content) as written:  # type: ignore[type-var]
                await upload(bucket, name, written, servers=means.servers)
        return SnapshotTaken(action.key, at, reader.size, status.revision, bucket.location(name))

    async def _data(self, key: Key) -> Any:
        try:
            return mapping((await self._means.client.get(SECRET, key)).get("data"))
        except ApiError as error:
            raise NotSaved(f"Secret {key}: {'there is none' if error.not_found else 'it cannot be read'}") from None
        except KubeError:
            raise NotSaved(f"Secret {key}: it can't be read") from None


def _file(at: datetime, status: Status, before: str) -> str:
    return f"etcd-{at:%Y%m%dT%H%M%SZ}-{status.revision}-before-{before}.db"
