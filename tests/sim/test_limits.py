"""Limits on hosts that come up at once, through the whole program: they hold at every moment, and no place is idle."""

from __future__ import annotations

from controllers.kernel.refs import CLUSTER, MACHINE_DEPLOYMENT, NODE
from nodewright.crds import load_crds
from nodewright.runtime.settings.wiring import reconcilers
from nodewright.sim import faults, users
from nodewright.sim.engine import Engine, Scenario

BOOT = 12.0


class Limited:
    """A MachineDeployment in a Cluster with such a spec; ``most`` is the most hosts that were seen without a Node."""

    def __init__(self, replicas: int, **spec: object) -> None:
        self.replicas, self.most = replicas, 0
        self.engine = Engine(0, Scenario(replicas=replicas, edits=0, faults=faults.NONE), reconcilers(), load_crds())
        config = {**users.SIMULATED, "bootSeconds": BOOT, "joinSeconds": 1.0, "cloud": {"name": "sim"}}
        home, strategy = users.cluster(), users.Strategy(1, 0, "Replace")
        home["spec"].update(spec)
        self.engine.plane.create(CLUSTER, home)
        self.engine.plane.create(MACHINE_DEPLOYMENT, users.deployment(replicas, strategy, config))

    def grow(self) -> float:
        """Until all have joined; the virtual seconds that took."""
        began = self.engine.clock.elapsed
        self.engine.settle_quietly(self._done)
        return self.engine.clock.elapsed - began

    def _done(self) -> bool:
        nodes, hosts = len(self.engine.plane.list(NODE)), len(self.engine.world.hosts())
        self.most = max(self.most, hosts - nodes)
        return nodes == self.replicas


def test_no_more_come_up_than_the_cluster_allows_and_no_place_is_left_idle() -> None:
    limited = Limited(9, maxHostsInFlight=3)
    seconds = limited.grow()
    assert limited.most == 3
    assert seconds <= 1.2 * 3 * (BOOT + 1), "the next one begins as soon as one has joined"


def test_a_cluster_that_takes_hosts_in_opens_up() -> None:
    """20 at first; when they have joined, the rest at once."""
    limited = Limited(26, bootstrapTokenLifetime="10m")
    seconds = limited.grow()
    assert limited.most == 20
    assert seconds <= 1.2 * 2 * (BOOT + 1)
