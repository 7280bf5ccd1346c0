"""How far is the drain of a Node, and what is the next thing to do? Asked anew each round; no worker waits.

CAPI, MC and gardener's MCM drain inside a reconcile worker, or until a timeout of hours; a Node whose
kubelet is silent can never finish terminating its pods, so waiting for it is waiting for ever (cluster-api#13508).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from controllers.drain import pods as pods_of_node
from controllers.drain.cordon import cordon, is_cordoned
from controllers.drain.pods import Sorted
from controllers.kernel.actions import Action, Evict, Patch
from controllers.kernel.conditions import find, parse_time
from controllers.kernel.refs import POD, Obj, key_of, ref_of

UNREACHABLE_GRACE = timedelta(seconds=60)
"""How long a Node may be unreachable before its drain is given up. Ready turns Unknown after some 40 s of silence."""
MOST_EVICTIONS = 50
"""Evictions of one round."""
LOOK_AGAIN = 5.0
"""Seconds until the next look; pods that end wake the Machine sooner."""
_MOST_NAMES = 5


@dataclass(frozen=True, slots=True)
class Draining:
    """What a drain is decided on. ``started_at``: when it began, None: not yet; ``timeout`` None: for ever."""

    machine_uid: str
    node: Obj
    pods: tuple[Obj, ...]
    budgets: tuple[Obj, ...]
    now: datetime
    started_at: datetime | None = None
    timeout: timedelta | None = None
    why: str = "its host is going to be deleted"


@dataclass(frozen=True, slots=True)
class Drained:
    """Nothing holds the host up any more; ``skipped`` says why the drain was given up, "" if it is really done."""

    skipped: str = ""


@dataclass(frozen=True, slots=True)
class NotDrained:
    """``actions`` are to be done now; ``why`` names the pods and budgets that are waited for.

    ``blocked``: budgets hold all that is left, so nothing moves before somebody else acts.
    """

    actions: tuple[Action, ...]
    why: str
    blocked: bool = False


Assessment = Drained | NotDrained


def assess(drain: Draining) -> Assessment:
    """The next step of a drain. Cordoning comes first and alone, so that no evicted pod lands on the Node again."""
    name = drain.node["metadata"]["name"]
    given_up = _given_up(drain, name)
    if given_up:
        return Drained(given_up)
    if not is_cordoned(drain.node):
        patch: Patch = cordon(drain.node, drain.machine_uid, drain.why)
        return NotDrained((patch,), f"cordoning Node {name}")
    pods = pods_of_node.sort(drain.pods, drain.budgets)
    if pods.is_empty:
        return Drained()
    evictions = tuple(
        Evict(ref_of(POD, pod), f"evict pod {key_of(pod)} from Node {name}: {drain.why}")
        for pod in pods.evictable[:MOST_EVICTIONS]
    )
    blocked = bool(pods.blocked) and not (pods.evictable or pods.terminating or pods.completing)
    return NotDrained(evictions, f"draining Node {name}: {_left(pods)}", blocked)


def _given_up(drain: Draining, name: str) -> str:
    if drain.timeout and drain.started_at and drain.now >= drain.started_at + drain.timeout:
        return f"Node {name} was not empty after nodeDrainTimeout ({int(drain.timeout.total_seconds())} s)"
    ready = find((drain.node.get("status") or {}).get("conditions"), "Ready")
    if ready is None or ready.get("status") != "Unknown":
        return ""
    since = parse_time(ready.get("lastTransitionTime"))
    if since is not None and drain.now < since + UNREACHABLE_GRACE:
        return ""
    return f"Node {name} is unreachable: its kubelet can't stop pods"


def _left(pods: Sorted) -> str:
    blocked = [f"{key_of(pod)} (PodDisruptionBudget {budget})" for pod, budget in pods.blocked]
    parts = [
        ("blocked", blocked),
        ("to evict", [str(key_of(pod)) for pod in pods.evictable]),
        ("terminating", [str(key_of(pod)) for pod in pods.terminating]),
        ("wait for completion of", [str(key_of(pod)) for pod in pods.completing]),
    ]
    return "; ".join(f"{title}: {_names(found)}" for title, found in parts if found)


def _names(found: list[str]) -> str:
    more = len(found) - _MOST_NAMES
    return ", ".join(found[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
