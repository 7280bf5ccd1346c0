"""The simulated hosts' kubelets: Nodes as the hosts would register and report them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controllers.kernel.refs import NODE, Key
from nodewright.sim.clock import VirtualClock
from nodewright.sim.plane import Plane
from providers.simulated.hosts import SimulatedHost
from providers.simulated.kubelet import node_for
from providers.simulated.world import World


class Kubelets:
    def __init__(self, plane: Plane, world: World, clock: VirtualClock) -> None:
        self._plane = plane
        self._world = world
        self._clock = clock
        self._registered: dict[str, Mapping[str, Any]] = {}

    def sync(self) -> None:
        """Every booted host registers once; afterwards it reports its status when that changes (heartbeats left out).

        A Node that was deleted stays deleted: a kubelet that runs doesn't register again.
        """
        now = self._clock()
        seen: set[str] = set()
        for host in self._world.booted():
            seen.add(host.id)
            node = node_for(host, host.request_at(now), now)
            says = _telling(node["status"])
            if self._registered.get(host.id) == says:
                continue
            self._tell(host, node)
            self._registered[host.id] = says
        for gone in self._registered.keys() - seen:
            del self._registered[gone]

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
