"""Runs one seed: bad luck first, then good luck until all has settled; checks the invariants all the way.

while edits are left:  one of {deliver events, run a reconcile, let time pass, garbage collection, an edit, a crash}
then:                  no more faults; everything is delivered and run until nothing is left to do
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

from controllers.kernel.actions import RemoveEtcdMember
from controllers.kernel.reconciler import Reconciler
from controllers.kernel.refs import CLUSTER, MACHINE_DEPLOYMENT, MACHINE_HEALTH_CHECK
from nodewright.sim import faults as menu
from nodewright.sim import users
from nodewright.sim.clock import VirtualClock
from nodewright.sim.faults import Faults
from nodewright.sim.invariants import Breach, Guard, always, settled
from nodewright.sim.kubelets import Kubelets
from nodewright.sim.plane import Plane
from nodewright.sim.process import Crash, Outside, Process
from providers.base.contract import HostState
from providers.simulated.config import Cloud
from providers.simulated.world import World

SETTLE_STEPS = 60_000
QUIET_SECONDS = 1_200.0
"""Nothing happened on its own for so long: what was going to happen has happened (back-offs end at 600 s)."""
FETCH_EVERY = 1000
"""Reconciles; the plane remembers only so many changes for a watch that does not fetch them."""
GRAIN = 0.05
"""Seconds; twice as often as the running program's simulated kubelets look at their hosts."""
STORY_TAIL = 60


@dataclass(frozen=True, slots=True)
class Scenario:
    """What one seed runs. ``config`` is merged into the Machines' SimulatedMachineConfig."""

    replicas: int = 3
    edits: int = 12
    steps_between_edits: int = 40
    faults: Faults = menu.ROUGH
    config: Mapping[str, Any] = field(default_factory=dict)
    health_check: bool = False
    """A MachineHealthCheck looks at the Machines, and hosts break for it to find (``Faults.broken_hosts``)."""
    bootstrap: bool = False
    """Hosts get bootstrap data, and each a token of its own."""


@dataclass(frozen=True, slots=True)
class Result:
    """How a seed went. ``breach`` is "" if every invariant held."""

    seed: int
    breach: str
    steps: int
    crashes: int
    virtual_seconds: float
    writes: Mapping[str, int]
    story: tuple[str, ...]

    def told(self) -> str:
        """The end of the story, for a failing test."""
        lines = [f"seed {self.seed}: {self.breach or 'all held'}", *self.story[-STORY_TAIL:]]
        return "\n".join(lines)


class Engine:
    def __init__(
        self, seed: int, scenario: Scenario, reconcilers: Iterable[Reconciler[Any]], crds: list[dict[str, Any]]
    ) -> None:
        self.seed = seed
        self.random = Random(seed)  # noqa: S311 (luck, not secrets)
        self.scenario = scenario
        self.clock = VirtualClock()
        self.story: list[str] = []
        self.plane = Plane(self.clock, crds, self.random)
        self.guard = Guard(self.plane)
        self.world = World(Cloud(name="sim", seed=seed), self.clock)
        self.kubelets = Kubelets(self.plane, self.world, self.clock)
        self._reconcilers = tuple(reconcilers)
        self.steps = self.crashes = self.broken = 0
        self.process = self._start()

    def run(self) -> Result:
        try:
            self._declare()
            self._rough()
            self._calm()
            self.settle()
        except Breach as breach:
            return self._result(str(breach))
        return self._result("")

    def settle_quietly(self, done: Callable[[], bool]) -> None:
        """Without bad luck and without checks: deliver, run, let time pass until ``done``. Raises Breach if never.

        Time passes in steps of at least ``GRAIN``: everything is looked at after each, however little has changed.
        """
        for _ in range(SETTLE_STEPS):
            self.work_off()
            if done():
                return
            before = self.clock.elapsed
            if not self._pass_time():
                break
            self.clock.advance(max(0.0, GRAIN - (self.clock.elapsed - before)))
        raise Breach("never done")

    def _declare(self) -> None:
        strategy = users.Strategy.drawn(self.random).with_policy(Random(f"policy {self.seed}"))  # noqa: S311
        self.plane.create(CLUSTER, users.cluster(self.scenario.bootstrap))
        config = {**users.SIMULATED, **self.scenario.config, "cloud": {"name": "sim"}}
        self.plane.create(MACHINE_DEPLOYMENT, users.deployment(self.scenario.replicas, strategy, config))
        if self.scenario.health_check:
            self.plane.create(MACHINE_HEALTH_CHECK, users.health_check())
        self._say(f"declares {self.scenario.replicas} Machines, {strategy}")
        self._set_faults(self.scenario.faults)

    def _rough(self) -> None:
        steps = self.scenario.steps_between_edits
        for edit in users.draw(self.random, self.scenario.edits):
            for _ in range(self.random.randint(steps // 4, steps * 2)):
                self._step()
            self._say(f"somebody {edit.says}")
            edit.do(self.plane)
            if self.broken < self.scenario.faults.broken_hosts:
                self._break_a_host()
        for _ in range(self.scenario.faults.outages):
            self.world.outage(self.clock() + timedelta(seconds=60))
            self._say("the provider is down for a minute")
            for _ in range(steps):
                self._step()

    def _break_a_host(self) -> None:
        """One breaks by itself, or its kubelet falls silent for good."""
        running = sorted(
            (host.machine_uid, host.name) for host in self.world.hosts() if host.state is HostState.RUNNING
        )
        if not running:
            return
        uid, name = self.random.choice(running)
        silent = self.random.random() < 0.5
        (self.world.stop_host if silent else self.world.break_host)(uid)
        self.broken += 1
        self._say(f"host {name} {'falls silent' if silent else 'breaks'}")

    def _calm(self) -> None:
        self._set_faults(menu.NONE)
        self._say("the bad luck ends")

    def settle(self) -> None:
        quiet_since = self.clock.elapsed
        for _ in range(SETTLE_STEPS):
            before = self.plane.writes.total()
            self.work_off()
            self._check()
            if self.plane.writes.total() != before:
                quiet_since = self.clock.elapsed
            breaches = self._unsettled()
            if not breaches:
                return
            if self.clock.elapsed - quiet_since > QUIET_SECONDS or not self._pass_time():
                raise Breach("settled wrongly: " + "; ".join(breaches[:5]))
        raise Breach("never settles")

    def _unsettled(self) -> list[str]:
        """What is not as it must be once all has settled."""
        return list(settled(self.plane, self.world))

    def work_off(self) -> None:
        """Deliver and run everything that needs no time to pass."""
        for _ in range(SETTLE_STEPS):
            self.kubelets.sync()
            self.plane.settle()
            if not self.process.poll() and not self.process.ready():
                return
            self.process.deliver(everything=True)
            for number in range(self.process.ready()):
                if number % FETCH_EVERY == FETCH_EVERY - 1:
                    self.process.poll()
                if self.process.ready():
                    self._round()
        raise Breach("the reconcilers never come to rest: one of them writes for ever")

    def _step(self) -> None:
        waiting = self.process.poll()
        choices: list[Callable[[], None]] = [self._gc_and_kubelets]
        if waiting and self.random.random() >= self._faults.lag:
            choices += [self.process.deliver] * 4
        if self.process.ready():
            choices += [self._round] * 4
        choices += [self._tick] * (1 if len(choices) > 1 else 4)
        self.random.choice(choices)()
        self._check()

    def _round(self) -> None:
        try:
            self.process.run_one()
        except Crash as crash:
            self.crash(f"the process dies, {crash}")

    def _gc_and_kubelets(self) -> None:
        self.kubelets.sync()
        self.plane.store.run_gc(limit=self.random.randint(1, 3))

    def _tick(self) -> None:
        if self.random.random() < 0.5:
            self.clock.advance(self.random.uniform(0.05, 3.0))
        else:
            self._pass_time()
        self.kubelets.sync()

    def next_moment(self) -> datetime | None:
        """When the next thing falls due that only time brings; None if there is none."""
        moments = [self.process.next_due(), self.world.next_change_at()]
        return min((moment for moment in moments if moment is not None), default=None)

    def crash(self, what: str) -> None:
        """The process dies and a new one begins with nothing but what plane and cloud hold."""
        self.crashes += 1
        self._say(what)
        self.process = self._start()

    def _pass_time(self) -> bool:
        """Jump to the next moment; False if there is none."""
        upcoming = self.next_moment()
        if upcoming is None:
            return False
        self.clock.advance_to(upcoming)
        self.clock.advance(0.001)
        return True

    def _check(self) -> None:
        self.steps += 1
        for breach in always(self.plane, self.world):
            raise Breach(breach)

    def _start(self) -> Process:
        return Process(
            Outside(
                self.plane,
                self.world,
                self.clock,
                self.random,
                self._faults,
                self._say,
                self.guard,
                self._remove_member,
            ),
            self._reconcilers,
        )

    def _remove_member(self, action: RemoveEtcdMember) -> None:
        raise LookupError(f"there is no etcd here: {action.why}")

    @property
    def _faults(self) -> Faults:
        return self.plane.faults

    def _set_faults(self, faults: Faults) -> None:
        self.plane.faults = faults
        self.world.adjust(
            Cloud(
                error_rate=faults.provider_errors,
                lost_answer_rate=faults.lost_provider_answers,
            )
        )
        self.process = self._start()

    def _say(self, what: str) -> None:
        self.story.append(f"{self.clock.elapsed:8.2f}s  {what}")

    def _result(self, breach: str) -> Result:
        return Result(
            self.seed,
            breach,
            self.steps,
            self.crashes,
            self.clock.elapsed,
            dict(self.plane.writes),
            tuple(self.story),
        )
