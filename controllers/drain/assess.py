"""How far is the drain of a Node, and what is the next thing to do? Asked anew each reconcile; no worker waits.

CAPI, MC and gardener's MCM drain inside a reconcile worker, or until a timeout of hours; a Node whose
kubelet is silent can never finish terminating its pods, so waiting for it is waiting for ever (cluster-api#13508).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from controllers.drain import pods as pods_of_node
from controllers.drain import stages
from controllers.drain.context import NO_CONTEXT, DrainContext
from controllers.drain.cordon import cordon, is_cordoned
from controllers.drain.pods import Sorted, lost_with
from controllers.drain.stages import NO_DEADLINES, Deadlines, Stage
from controllers.kernel.actions import Action, Patch
from controllers.kernel.conditions import find, parse_time, some_of
from controllers.kernel.refs import Obj, key_of

UNREACHABLE_GRACE = timedelta(seconds=60)
"""How long a Node may be silent before what is left on it is given up. Ready turns Unknown after some 40 s."""
REQUEUE_AFTER = 5.0
"""Seconds until the next look; pods that end wake the Machine sooner."""
_MOST_NAMES = 5


@dataclass(frozen=True, slots=True)
class Draining:
    """What a drain is decided on. ``started_at``: when it began, None: not yet."""

    machine_uid: str
    node: Obj
    now: datetime
    drain_context: DrainContext = NO_CONTEXT
    started_at: datetime | None = None
    deadlines: Deadlines = NO_DEADLINES
    why: str = "its host is going to be deleted"

    @property
    def passed(self) -> timedelta:
        return self.now - self.started_at if self.started_at is not None else timedelta(0)


@dataclass(frozen=True, slots=True)
class Drained:
    """No pod holds the host up any more; ``skipped`` says why the drain was given up, "" if it is really done.

    ``out_of_reach``: nobody on the Node could stop a pod or unmount a volume, so there is no point in waiting for that.
    """

    skipped: str = ""
    out_of_reach: bool = False


@dataclass(frozen=True, slots=True)
class NotDrained:
    """``actions`` are to be done now; ``why`` names the pods and budgets that are waited for.

    ``blocked``: nothing moves before somebody else acts. ``lost`` names what ends with the pods that are about to go,
    reported once, when the drain begins.
    """

    actions: tuple[Action, ...]
    why: str
    blocked: bool = False
    lost: str = ""


Assessment = Drained | NotDrained


def assess(drain: Draining) -> Assessment:
    """The next step of a drain. Cordoning comes first and alone, so that no evicted pod lands on the Node again."""
    name = drain.node["metadata"]["name"]
    if drain.deadlines.is_over(drain.passed):
        limit = int((drain.deadlines.give_up or timedelta(0)).total_seconds())
        return Drained(f"Node {name} was not empty after nodeDrainTimeout ({limit} s)")
    reachable = not is_out_of_reach(drain.node, drain.now)
    pods = pods_of_node.sort(drain.drain_context, in_tiers=reachable)
    if not is_cordoned(drain.node):
        patch: Patch = cordon(drain.node, drain.machine_uid, drain.why)
        return NotDrained((patch,), f"cordoning Node {name}", lost=_lost(pods))
    if drain.drain_context.rules.problem:
        return NotDrained((), f"not draining Node {name}: {drain.drain_context.rules.problem}", blocked=True)
    if not reachable:
        return _out_of_reach(drain, pods)
    if pods.is_empty:
        return Drained()
    stage = drain.deadlines.stage(drain.passed)
    held_only = stage is Stage.EVICT and not (pods.evictable or pods.terminating or pods.completing)
    return NotDrained(
        stages.actions(stage, pods, f"Node {name} is drained, {drain.why}"),
        f"{stage} Node {name}: {_left(pods)}",
        blocked=bool(pods.blocked) and held_only,
    )


def is_out_of_reach(node: Obj, now: datetime) -> bool:
    """Whether its kubelet has been silent for so long that nobody can stop its pods or unmount its volumes."""
    ready = find((node.get("status") or {}).get("conditions"), "Ready")
    if ready is None or ready.get("status") != "Unknown":
        return False
    since = parse_time(ready.get("lastTransitionTime"))
    return since is None or now >= since + UNREACHABLE_GRACE


def _out_of_reach(drain: Draining, pods: Sorted) -> Assessment:
    """All pods that may go are evicted at once, so that they are replaced elsewhere; none waits for another.

    A pod that is terminating, blocked or to complete by itself would stay so for ever: who should report its end?
    """
    name = drain.node["metadata"]["name"]
    asked = stages.actions(drain.deadlines.stage(drain.passed), pods, f"Node {name} is unreachable", reachable=False)
    if asked:
        return NotDrained(asked, f"draining Node {name}, which is unreachable: {_left(pods)}")
    left = "" if pods.is_empty else f"; given up: {_left(pods)}"
    return Drained(f"Node {name} is unreachable: its kubelet can't stop pods{left}", out_of_reach=True)


def _left(pods: Sorted) -> str:
    for_good = [f"{key_of(pod)} ({hold.why})" for pod, hold in pods.blocked if hold.for_good]
    blocked = [f"{key_of(pod)} ({hold.why})" for pod, hold in pods.blocked if not hold.for_good]
    parts = [
        ("blocked until somebody changes a PodDisruptionBudget", for_good),
        ("blocked", blocked),
        ("to go", _titles(pods.evictable)),
        ("terminating", _titles(pods.terminating)),
        ("wait for completion of", _titles(pods.completing)),
        ("after those", _titles(pods.later)),
    ]
    return "; ".join(f"{title}: {_names(found)}" for title, found in parts if found)


def _lost(pods: Sorted) -> str:
    going = ((pod, lost_with(pod)) for pod in (*pods.moving, *pods.later))
    return _names([f"{key_of(pod)} ({why})" for pod, why in going if why])


def _titles(pods: Iterable[Obj]) -> list[str]:
    return [str(key_of(pod)) for pod in pods]


def _names(found: list[str]) -> str:
    return some_of(found, _MOST_NAMES)
