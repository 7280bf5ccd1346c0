"""A week of a large cluster with everything that goes wrong in one, on the virtual clock.

Hosts break and vanish, a zone can't be heard for an hour, nodes flap, the provider and the API are down for a while,
the process dies; people roll, scale and delete meanwhile. Nothing of it may break a minimum by our own hand, and when
the week ends everything has to be as declared.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_HEALTH_CHECK, uid_of
from nodewright.crds import load_crds
from nodewright.runtime.settings.wiring import reconcilers
from nodewright.sim import faults, users
from nodewright.sim.engine import Engine, Scenario
from nodewright.sim.invariants import Breach, always, available, bounds
from nodewright.sim.plane import Plane
from nodewright.sim.soak_faults import ZONES, SoakFault, draw
from providers.simulated.config import Cloud
from providers.simulated.hosts import SimulatedHost

SETTLE = timedelta(hours=2)
"""After the last trouble: back-offs end and what was frozen goes on."""
GRAIN = timedelta(seconds=1)
"""Everything is looked at once in it at most."""
POLL_EVERY = timedelta(minutes=10)
"""The invariants of the whole cluster are checked so often, and after every trouble."""
ZONE_CAPACITY = 1.3
"""Hosts that the zones have room for in all, per Machine declared; they fill up one after the other."""
CONFIG = {
    **users.SIMULATED,
    "meanHoursBetweenFailures": 4000,
    "bootSeconds": {"median": 10, "p99": 40},
    "joinSeconds": 5,
    "deleteSeconds": {"median": 5, "p99": 20},
    "cloud": {"name": "sim"},
}


@dataclass(frozen=True, slots=True)
class Options:
    machines: int = 1000
    days: int = 7
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """``breach`` is "" if every rule held. ``full``: share of time in which the declared minimum was available."""

    options: Options
    breach: str
    soak_faults: Mapping[str, int]
    made: int
    least: int
    full: float
    crashes: int
    writes: Counter[str]
    seconds: float
    trace: tuple[str, ...]
    """What happened and what was done about it, for a breach."""

    def rows(self) -> list[tuple[str, str]]:
        """What a table shows, first the verdict."""
        return [
            ("verdict", self.breach or "no minimum broken by our own hand, everything converged"),
            ("Machines declared", f"{self.options.machines}"),
            ("days", f"{self.options.days}"),
            *((f"  {what}", f"{number}") for what, number in sorted(self.soak_faults.items())),
            ("Machines made in all", f"{self.made}"),
            ("fewest available at once", f"{self.least}"),
            ("time at the declared minimum or above", f"{self.full:.1%}"),
            ("crashes of the controllers", f"{self.crashes}"),
            ("writes by the controllers", f"{self.writes.total():,}"),
            ("writes per Machine made", f"{self.writes.total() / max(self.made, 1):.1f}"),
            ("seconds", f"{self.seconds:.1f}"),
        ]


class Soak:
    """``run`` once. What troubles do is public below: they are handed this object."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.random = Random(f"week/{options.seed}")  # noqa: S311 (luck, not secrets)
        scenario = Scenario(replicas=options.machines, edits=0, faults=faults.NONE)
        self.engine = Engine(options.seed, scenario, reconcilers(), load_crds())
        reconciler = math.ceil(options.machines * ZONE_CAPACITY / len(ZONES))
        self.engine.world.adjust(Cloud(zones=dict.fromkeys(ZONES, reconciler)))
        self.engine.kubelets.is_silent = self._is_silent
        self.silent_zones: set[str] = set()
        self.silent_hosts: set[str] = set()
        self._calls: list[tuple[datetime, str, Callable[[], None]]] = []
        self._looked_at = self._begin = self.engine.clock()
        self._full_since: datetime | None = None
        self._full = timedelta()
        self._least = options.machines
        self._uids: set[str] = set()

    def run(self, progress: Callable[[int], None] = lambda _days: None) -> Report:
        """``progress`` is called with the days that have passed, once for each."""
        started, breach, happened, passed = time.monotonic(), "", Counter[str](), 0
        try:
            self._declare()
            begin = self.engine.clock()
            for trouble in draw(self.random, timedelta(days=self.options.days)):
                self._until(begin + trouble.after)
                self._say(trouble, happened)
                days = (self.engine.clock() - begin).days
                if days > passed:
                    progress(days)
                    passed = days
                trouble.strike(self)
                self.engine.kubelets.requeue_after()
                self._look()
            self._until(self.engine.clock() + SETTLE)
            self.engine.settle()
        except Breach as broken:
            breach = str(broken)
        return self._report(breach, happened, time.monotonic() - started)

    # What troubles do

    def later(self, minutes: float, says: str, do: Callable[[], None]) -> None:
        """The end of a trouble, or its next part."""
        self._calls.append((self.engine.clock() + timedelta(minutes=minutes), says, do))
        self._calls.sort(key=lambda call: call[0])

    def some_hosts(self, number: int) -> list[SimulatedHost]:
        """Hosts that run, by lot."""
        running = sorted(self.engine.world.booted(), key=lambda host: host.id)
        return self.random.sample(running, min(number, len(running)))

    def by_hand(self, says: str, do: Callable[[Plane], None]) -> None:
        """What a person does to the API's objects; while it is down they try again."""
        if self.engine.plane.down_since is not None:
            self.later(5, says, lambda: self.by_hand(says, do))
            return
        do(self.engine.plane)

    # Inside

    def _declare(self) -> None:
        plane, wanted = self.engine.plane, self.options.machines
        plane.create(CLUSTER, users.cluster())
        strategy = users.Strategy("10%", "2%", "Replace")
        plane.create(MACHINE_DEPLOYMENT, users.deployment(wanted, strategy, CONFIG))
        plane.create(MACHINE_HEALTH_CHECK, _health_check())
        while self._available() < wanted:
            self._until(self.engine.clock() + POLL_EVERY)
        self._least = wanted
        self._begin = self.engine.clock()
        self._full_since = self._looked_at = self.engine.clock()

    def _do_what_is_due(self) -> None:
        while self._calls and self._calls[0][0] <= self.engine.clock():
            _, says, do = self._calls.pop(0)
            self._tell(says)
            do()
            self.engine.kubelets.requeue_after()

    def _until(self, moment: datetime) -> None:
        """Let time pass and the controllers work, troubles' ends included, until ``moment``."""
        clock = self.engine.clock
        while True:
            self.engine.work_off()
            if clock() - self._looked_at >= POLL_EVERY:
                self._look()
            target = min(moment, clock() + POLL_EVERY)
            if self._calls:
                target = min(target, self._calls[0][0])
            upcoming = self.engine.next_moment()
            if upcoming is not None and upcoming < target:
                target = min(target, max(upcoming, clock() + GRAIN))
            clock.advance_to(target)
            self._do_what_is_due()
            if clock() >= moment:
                self.engine.work_off()
                return

    def _look(self) -> None:
        engine, now = self.engine, self.engine.clock()
        self._looked_at = now
        for breach in always(engine.plane, engine.world):
            raise Breach(breach)
        number = self._available()
        deployment = engine.plane.get(MACHINE_DEPLOYMENT, users.DEPLOYMENT)
        assert deployment is not None
        self._least = min(self._least, number)
        if self._full_since is not None:
            self._full += now - self._full_since
        self._full_since = now if number >= bounds(deployment).least else None

    def _available(self) -> int:
        machines = self.engine.plane.list(MACHINE)
        self._uids.update(map(uid_of, machines))
        return sum(1 for machine in machines if available(machine))

    def _is_silent(self, host: SimulatedHost) -> bool:
        return host.zone in self.silent_zones or host.id in self.silent_hosts

    def _say(self, trouble: SoakFault, happened: Counter[str]) -> None:
        happened[trouble.kind] += 1
        self._tell(trouble.says)

    def _tell(self, what: str) -> None:
        self.engine.trace.append(f"{self.engine.clock.elapsed:8.2f}s  {what}")

    def _report(self, breach: str, happened: Mapping[str, int], seconds: float) -> Report:
        engine = self.engine
        return Report(
            options=self.options,
            breach=breach,
            soak_faults=happened,
            made=len(self._uids),
            least=self._least,
            full=self._full / max(engine.clock() - self._begin, timedelta(seconds=1)),
            crashes=engine.crashes,
            writes=engine.plane.writes,
            seconds=seconds,
            trace=tuple(engine.trace),
        )


def _health_check() -> dict[str, Any]:
    labels = {"pool": users.DEPLOYMENT.name}
    sick = [{"type": "Ready", "status": status, "timeout": "5m"} for status in ("False", "Unknown")]
    return {
        "apiVersion": MACHINE_HEALTH_CHECK.api_version,
        "kind": MACHINE_HEALTH_CHECK.name,
        "metadata": {"name": users.DEPLOYMENT.name, "namespace": users.NAMESPACE},
        "spec": {
            "clusterName": "sim",
            "selector": {"matchLabels": labels},
            "unhealthyConditions": sick,
            "maxUnhealthy": "40%",
        },
    }
