"""What is known of a cluster's etcd, read in the background through the client ports of its members."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from controllers.kernel.refs import Key


@dataclass(frozen=True, slots=True)
class EtcdHost:
    """A host that should have a member. ``name``: of its Node, or its own; ``address``: IP; ``uid``: of its Machine, ""
    of one of which only the address is known."""

    name: str
    address: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class EtcdMember:
    """One entry of the member list. ``healthy`` None: nobody knows. ``name`` is "" until it has started.

    ``why``: what is wrong with it, for people. ``alarms``: as etcd names them (``NOSPACE``). ``version``: "" if it has
    not told.
    """

    id: int
    name: str
    learner: bool = False
    healthy: bool | None = None
    alarms: tuple[str, ...] = ()
    db_size_bytes: int | None = None
    why: str = ""
    version: str = ""

    @property
    def title(self) -> str:
        return self.name or f"{self.id:x}"


@dataclass(frozen=True, slots=True)
class EtcdMembers:
    """etcd's own list, confirmed by a quorum, read after our last change of it."""

    members: tuple[EtcdMember, ...]
    read_at: datetime


@dataclass(frozen=True, slots=True)
class EtcdUnread:
    """Nobody answered. ``finding_out``: nobody has looked since the start or the last change, and soon it is known."""

    why: str
    finding_out: bool = False


EtcdRead = EtcdMembers | EtcdUnread


class EtcdView(Protocol):
    """What a reconciler needs of whoever reads etcd. It answers at once, with what was read last."""

    def look(self, cluster: Key, hosts: tuple[EtcdHost, ...]) -> EtcdRead:
        """A call requests a new read."""


class NobodyReads:
    """``EtcdView`` of a process that reads no etcd: a dry run, or one without the right to read the CA."""

    def look(self, cluster: Key, hosts: tuple[EtcdHost, ...]) -> EtcdRead:
        return EtcdUnread("this process reads no etcd")


NOBODY_READS = NobodyReads()
