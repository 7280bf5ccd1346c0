"""The simulated hosts' kubelets: Nodes as the hosts would register and report them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controllers.kernel.conditions import format_time
from controllers.kernel.refs import NODE, Key
from nodewright.sim.clock import VirtualClock
from nodewright.sim.plane import Plane
from providers.simulated.hosts import SimulatedHost
from providers.simulated.kubelet import node_for
from providers.simulated.world import World


@dataclass(frozen=True, slots=True)
class _Kubelet:
    """What it said last, of which host, and until when it has nothing else to say by itself."""

    host: SimulatedHost
    says: Mapping[str, Any]
    until: datetime | None


class Kubelets:
    def __init__(self, plane: Plane, world: World, clock: VirtualClock) -> None:
        self._plane = plane
        self._world = world
        self._clock = clock
        self._registered: dict[str, _Kubelet] = {}
        self._heard: tuple[int, datetime | None] | None = None
        """The hosts' revision when all were heard last, and until when none has more to say; None: look again."""
        self.is_silent: Callable[[SimulatedHost], bool] = lambda _host: False
        """Hosts that run and can't be heard (a network that is cut). A change of it is followed by ``requeue_after``.
        """

    def requeue_after(self) -> None:
        self._heard = None

    def sync(self) -> None:
        """Every booted host registers once; afterwards it reports its status when that changes (heartbeats left out).

        A Node that was deleted stays deleted: a kubelet that runs doesn't register again. While the API is down nobody
        reports, and nobody judges.
        """
        now = self._clock()
        if self._plane.down_since is not None or self._is_still(now):
            return
        seen: set[str] = set()
        for host in self._world.booted():
            if self.is_silent(host):
                continue
            seen.add(host.id)
            known = self._registered.get(host.id)
            if known is not None and known.host is host and (known.until is None or now < known.until):
                continue
            node = node_for(host, host.request_at(now), now)
            says = _telling(node["status"])
            if known is None or known.says != says:
                self._tell(host, node)
            self._registered[host.id] = _Kubelet(host, says, host.next_change_after(now))
        heard = {self._registered[id_].host.name for id_ in seen}
        for gone in sorted(self._registered.keys() - seen):  # equal seeds, equal stories
            name = self._registered.pop(gone).host.name
            if name not in heard:  # else another host of that name has taken its Node over
                self._fall_silent(name, now)
        self._heard = (self._world.revision, self._world.next_change_at())

    def _is_still(self, now: datetime) -> bool:
        """Nothing has happened to any host since all were heard. Most looks are at such a world."""
        if self._heard is None or self._heard[0] != self._world.revision:
            return False
        return self._heard[1] is None or now < self._heard[1]

    def _fall_silent(self, name: str, now: datetime) -> None:
        """What the node lifecycle controller does to the Node of a kubelet that reports no more."""
        node = self._plane.get(NODE, Key("", name))
        if node is None:
            return
        unknown = {"status": "Unknown", "reason": "NodeStatusUnknown", "lastTransitionTime": format_time(now)}
        conditions = (node.get("status") or {}).get("conditions") or ()
        silent = [{**c, **unknown} if c["type"] == "Ready" and c["status"] != "Unknown" else c for c in conditions]
        self._plane.patch(NODE, Key("", name), {"status": {"conditions": silent}}, "status")

    def _tell(self, host: SimulatedHost, node: dict[str, Any]) -> None:
        key = Key("", host.name)
        if self._plane.get(NODE, key) is not None:
            self._plane.patch(NODE, key, {"status": node["status"]}, "status")
        elif host.id not in self._registered:
            self._plane.create(NODE, node)
            self._plane.patch(NODE, key, {"status": node["status"]}, "status")


def _telling(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """The status without what changes with every heartbeat."""
    conditions = [(c["type"], c["status"], c["reason"], c["lastTransitionTime"]) for c in status["conditions"]]
    return {**status, "conditions": conditions}
