"""What the quorum planner decides from, and what it may decide: frozen values, without I/O and without a clock."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

MAX_REPLICAS = 7
"""More voters make writes slower and bear no more than three losses (etcd's FAQ: at most seven members)."""


class Health(StrEnum):
    """What is known of an etcd member. Only HEALTHY counts as healthy."""

    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Member:
    """One entry of etcd's member list. ``name`` is "" until it has started (it was added and never joined).

    ``machine`` names the Machine on whose host it runs, "" if there is none. ``learner``: it has no vote.
    """

    id: int
    name: str
    machine: str = ""
    learner: bool = False
    health: Health = Health.UNKNOWN

    @property
    def is_voter(self) -> bool:
        return not self.learner

    @property
    def works(self) -> bool:
        return self.health is Health.HEALTHY and bool(self.name)

    @property
    def title(self) -> str:
        return f"etcd member {self.name or f'{self.id:x} (never started)'}"


class Phase(StrEnum):
    """Where a Machine stands, as far as the control plane is concerned."""

    JOINING = "Joining"
    """It has no Node yet."""
    RUNNING = "Running"
    """It has joined."""
    UPDATING = "Updating"
    """It was handed another template, and its host is not so yet."""
    DRAINING = "Draining"
    """It is being deleted, and its host is not to go yet."""
    DRAINED = "Drained"
    """It is being deleted; only our hook holds its host."""


@dataclass(frozen=True, slots=True)
class Machine:
    """``created``: the order in which Machines were made. ``dead``: its host is known to be gone or beyond repair.

    ``replace``: somebody asks for another (a health check, a person, a terminal failure).
    ``first``: a person asks that this one goes first on a scale-down. ``whole``: its Node is Ready and its static pods
    (API server, controller manager, scheduler) run. ``up_to_date``: it is of the present template and version.
    ``held``: our hook keeps its host until its member is gone.
    ``had_member``: it was seen with an etcd member. ``may_join``: it is being deleted, was never seen with one, and its
    host may still be at kubeadm.
    ``stays``: why its host can't be changed in place, "" if it can or nobody knows.
    ``domain``: its failure domain, "" if it has none.
    ``went_back``: why its update failed, if its host went back to what it was; "" else.
    ``expires``: ``they end on 2026-12-24``, if its certificates are to be renewed now; "" else.
    """

    name: str
    created: int = 0
    phase: Phase = Phase.RUNNING
    dead: bool = False
    replace: bool = False
    first: bool = False
    whole: bool = True
    up_to_date: bool = True
    held: bool = True
    had_member: bool = False
    may_join: bool = False
    version: str = ""
    stays: str = ""
    domain: str = ""
    went_back: str = ""
    expires: str = ""

    @property
    def renewed(self) -> bool:
        """Nothing is to be changed on it: it is of the present template, and its certificates last."""
        return self.up_to_date and not self.expires

    @property
    def deleting(self) -> bool:
        return self.phase in (Phase.DRAINING, Phase.DRAINED)

    @property
    def goes(self) -> bool:
        """It is to be replaced whatever its template is."""
        return self.dead or self.replace


class InPlace(StrEnum):
    """What is done with Machines of an earlier template, as in MachineDeployments."""

    NEVER = "Never"
    PREFER = "Prefer"
    REQUIRE = "Require"


@dataclass(frozen=True, slots=True)
class Policy:
    """``surge``: 1: a replacement joins before the old one goes; 0: the old one goes first (the hosts are fixed).

    ``remediates`` is "" if Machines that are asked to be replaced may be, else why not.
    ``paused`` is "" if Machines of an earlier template may be touched now, else why not.
    """

    surge: int = 1
    in_place: InPlace = InPlace.NEVER
    remediates: str = ""
    paused: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """All that is known now. ``etcd_unknown`` is "" if ``members`` is etcd's own list, read after our last change, else
    why it is not.

    ``initialized``: there is or was a cluster, by whatever trace of it. ``init_machine``: the Machine that holds the
    init lock, "" while nobody does.
    ``blocked``: why nothing new may be begun (a Cluster that is being deleted, a template that can't be used), "".
    ``domains``: failure domains to spread over, in the order in which they are taken; ``exhausted``: those of them that
    have no host now.
    """

    replicas: int
    machines: tuple[Machine, ...] = ()
    members: tuple[Member, ...] = ()
    etcd_unknown: str = ""
    initialized: bool = True
    init_machine: str = ""
    policy: Policy = Policy()
    blocked: str = ""
    domains: tuple[str, ...] = ()
    exhausted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Init:
    """Make the first Machine; it runs ``kubeadm init``. ``machine``: the one that holds the lock already, "" if none
    does: then a new one gets it."""

    machine: str
    why: str


@dataclass(frozen=True, slots=True)
class Join:
    """Make one Machine; its host joins."""

    why: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete a Machine. Its etcd member stays until its host is drained (RemoveMember), since a kubelet that talks to
    the API server of its own host could not report the drain any more (Cluster API issues 11138, 11591)."""

    machine: str
    why: str


@dataclass(frozen=True, slots=True)
class RemoveMember:
    """Take a member out of etcd's list. ``machine``: then this Machine's host may go, "" if it has none."""

    member: int
    machine: str
    why: str


@dataclass(frozen=True, slots=True)
class Release:
    """Let the host of a Machine go that is being deleted: it has no member any more."""

    machine: str
    why: str


@dataclass(frozen=True, slots=True)
class UpgradeInPlace:
    """Hand the present template to a Machine, whose provider changes its host."""

    machine: str
    why: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing now. ``stuck``: only a person can move on; ``settled``: all is as desired."""

    why: str
    stuck: bool = False
    settled: bool = False


Change = Init | Join | Remove | RemoveMember | Release | UpgradeInPlace
Step = Change | Wait


@dataclass(frozen=True, slots=True)
class Decision:
    """At most one change. ``refusals``: for each step that was considered and not taken, why."""

    step: Step
    refusals: tuple[str, ...] = ()
