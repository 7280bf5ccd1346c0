"""etcd and kubeadm as a control plane's hosts play them: init, join as learner, promotion, loss, removal.

Held to what was measured on real hosts: a join beside a member that does not work hangs; a removal needs a quorum; a
member stays in the list when its host is gone; a host that is being updated is away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count

from api import names
from controllers.controlplane.quorum import quorum
from controllers.kernel.actions import RemoveEtcdMember
from controllers.kernel.etcd import EtcdHost, EtcdMember, EtcdMembers, EtcdRead, EtcdUnread
from controllers.kernel.refs import MACHINE, Key, Obj, annotations_of, uid_of
from nodewright.apiserver.values import ApiError
from nodewright.sim.invariants import Breach
from nodewright.sim.plane import Plane
from providers.base.contract import HostState
from providers.simulated.hosts import SimulatedHost
from providers.simulated.world import World


@dataclass(frozen=True, slots=True)
class _Member:
    """``host``: the simulated host that it runs on; ``uid``: of its Machine."""

    id: int
    name: str
    host: str
    uid: str
    learner: bool


class Etcd:
    """One cluster's. ``changed`` is called when a host has joined."""

    def __init__(self, plane: Plane, world: World, clock: Callable[[], datetime], changed: Callable[[], None]) -> None:
        self._plane = plane
        self._world = world
        self._clock = clock
        self._changed = changed
        self._ids = count(0xA1)
        self.members: dict[int, _Member] = {}
        self.joined: set[str] = set()
        self.spent: set[str] = set()
        """Hosts whose member was removed: kubeadm does not join a second time."""
        self.initialized_on = ""
        self.struck: set[str] = set()
        """Hosts that broke or were lost without our doing."""
        self.cut: frozenset[str] = frozenset()
        """Hosts that are cut off from all others: their members run and know no leader."""
        self.blind = False
        """The controllers are on the side of those that are cut off: they reach nobody else."""

    # -- what the hosts do

    def tick(self) -> None:
        machines = {uid_of(machine): machine for machine in self._plane.list(MACHINE)}
        for host in list(self._world.booted()):
            machine = machines.get(host.request.identity.machine_uid)
            if (
                machine is None
                or host.id in self.joined | self.spent
                or host.state_at(self._clock()) is not HostState.RUNNING
            ):
                continue
            if annotations_of(machine).get(names.CONTROL_PLANE_INIT) == "true":
                self._init(host, machine)
            else:
                self._join(host, machine)

    def _init(self, host: SimulatedHost, machine: Obj) -> None:
        if self.initialized_on:
            raise Breach(f"a second kubeadm init, on {host.name}; the first was on {self.initialized_on}")
        self.initialized_on = host.name
        self._add(host, machine, learner=False)
        self._has_joined(host)

    def _join(self, host: SimulatedHost, machine: Obj) -> None:
        own = next((member for member in self.members.values() if member.host == host.id), None)
        if not self.has_quorum:
            return
        if own is not None:
            self.members[own.id] = replace(own, learner=False)
            self._has_joined(host)
        elif all(self.works(member) for member in self.members.values()):
            self._add(host, machine, learner=True)

    def _add(self, host: SimulatedHost, machine: Obj, *, learner: bool) -> None:
        number = next(self._ids)
        self.members[number] = _Member(number, host.name, host.id, uid_of(machine), learner)

    def _has_joined(self, host: SimulatedHost) -> None:
        self.joined.add(host.id)
        self._changed()

    # -- what is so

    def works(self, member: _Member) -> bool:
        """It runs, and is with the others."""
        host = self._world.host(member.uid)
        runs = host is not None and host.id == member.host and host.state_at(self._clock()) is HostState.RUNNING
        return runs and member.host not in self.cut

    @property
    def voters(self) -> list[_Member]:
        return [member for member in self.members.values() if not member.learner]

    @property
    def healthy(self) -> int:
        return sum(self.works(member) for member in self.voters)

    @property
    def margin(self) -> int:
        return self.healthy - quorum(len(self.voters))

    @property
    def has_quorum(self) -> bool:
        return bool(self.members) and self.margin >= 0

    @property
    def answers(self) -> bool:
        """The cluster's API, to the controllers."""
        return self.has_quorum and not self.blind

    def runs(self, node: str) -> bool:
        """Whether the static pods of a Node are ready."""
        return not self.blind and any(
            member.name == node and self.works(member) and not member.learner for member in self.members.values()
        )

    def read(self) -> EtcdRead:
        """Of one that is cut off the list is answered too, which no quorum confirms: nobody in it knows a leader."""
        if not self.blind and not any(self.works(member) for member in self.members.values()):
            return EtcdUnread("no member answers")
        found = (EtcdMember(m.id, m.name, m.learner, self.works(m) and not self.blind) for m in self.members.values())
        return EtcdMembers(tuple(found), self._clock())

    # -- what is asked of it

    def remove(self, action: RemoveEtcdMember) -> None:
        """Raises ApiError if it is refused, and Breach if it must not have been asked."""
        if not self.has_quorum or self.blind:
            raise ApiError(503, "Unavailable", "simulated: etcd has no leader")
        if action.members != frozenset(self.members):
            raise ApiError(409, "Conflict", "simulated: other members than were seen")
        if not all(self.works(self.members[number]) for number in action.healthy):
            raise ApiError(409, "Conflict", "simulated: a member that was reckoned with does not answer")
        gone = self.members.pop(action.member)
        self.spent.add(gone.host)
        if not self.has_quorum:
            raise Breach(f"without {gone.name} {self.healthy} of {len(self.voters)} voters work: no quorum")

    def breaches(self) -> list[str]:
        """What our hand has broken."""
        now, found = self._clock(), []
        away = []
        for member in self.voters:
            host = self._world.host(member.uid)
            if host is None or host.id != member.host or host.state_at(now) is HostState.DELETING:
                if member.host not in self.struck:
                    found.append(f"the host of {member.name} went while it had a vote")
            elif host.is_updating(now):
                away.append(member.name)
        if len(away) > 1:
            found.append(f"{', '.join(away)} are away at once")
        struck = sum(member.host in self.struck | self.cut for member in self.voters)
        if away and len(self.voters) > 1 and self.healthy + struck < quorum(len(self.voters)):
            found.append(f"{away[0]} is away, and {self.healthy} of {len(self.voters)} voters work: no quorum")
        return found


class LastRead:
    """``EtcdView``: what was read last, for as long as nothing of it was changed. A crash forgets it."""

    def __init__(self, etcd: Etcd) -> None:
        self._etcd = etcd
        self._read: EtcdRead | None = None

    def look(self, cluster: Key, hosts: tuple[EtcdHost, ...]) -> EtcdRead:
        return self._read if self._read is not None else EtcdUnread("it was not read yet", finding_out=True)

    def refresh(self) -> None:
        self._read = self._etcd.read()

    def forget(self) -> None:
        self._read = None
