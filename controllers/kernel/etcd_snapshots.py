"""Snapshots of a cluster's etcd in a bucket or on a host: what is asked for, and what is known of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from controllers.kernel.etcd import EtcdHost
from controllers.kernel.refs import Key


@dataclass(frozen=True, slots=True)
class SnapshotTarget:
    """``secret``: names the bucket and holds its credentials. ``recipients``: public keys of age. ``plain``: somebody
    has asked that it is not encrypted; without either it is not saved."""

    secret: Key
    recipients: tuple[str, ...] = ()
    plain: bool = False


@dataclass(frozen=True, slots=True)
class HostTarget:
    """The host of ``machine`` saves its own member's database: ``script``, run as root there, prints where."""

    machine: str
    host: EtcdHost
    script: str


@dataclass(frozen=True, slots=True)
class SnapshotTaken:
    """``key``: the step for which it was asked. ``revision``: etcd's when it began; the snapshot holds all until then.

    ``size_bytes``: of the database; ``location``: URL of the object, or ``host:path``; ``machine``: whose host keeps
    it, "" for a bucket.
    """

    key: str
    at: datetime
    size_bytes: int
    revision: int
    location: str
    machine: str = ""


@dataclass(frozen=True, slots=True)
class SnapshotFailed:
    """``why``: for people. It is asked for again at ``retry_at``. ``unable``: the provider of the host has no way to
    run anything there."""

    key: str
    why: str
    retry_at: datetime
    unable: bool = False


@dataclass(frozen=True, slots=True)
class SnapshotUnderWay:
    key: str


SnapshotRead = SnapshotTaken | SnapshotFailed | SnapshotUnderWay


class SnapshotsView(Protocol):
    """What a reconciler needs of whoever takes snapshots. It answers at once."""

    def snapshot(self, cluster: Key) -> SnapshotRead | None:
        """The last one that was asked for in this process; None if none was."""


class NobodySaves:
    """``SnapshotsView`` of a process that takes none: a dry run."""

    def snapshot(self, cluster: Key) -> SnapshotRead | None:
        return None


NOBODY_SAVES = NobodySaves()
