"""Whole rollouts as stories: the rooms of sets decide, small mutators play the Machine controller and people.

A play goes in a fixed order (and its story is kept in ``golden``) or in an order drawn from a seed. After every write
it is checked that nothing was broken by our own hand. ``python -m tests.controllers.machinedeployment.rollouts`` writes
the stories anew.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from controllers.kernel.actions import Action, Create, Delete, Event, Patch
from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, Obj, is_deleting, key_of
from tests.builders import World, machine_deployment
from tests.builders.loop import plan_for
from tests.builders.objects import MachineDeploymentBuilder
from tests.builders.plans import sizes as sizes_in
from tests.builders.world import conditions_of

FIRST, SECOND, THIRD, BROKEN = "v1.34.0", "v1.35.0", "v1.36.0", "v0.0.0"
GOLDEN = Path(__file__).parent / "golden"
MOST_STEPS = 6000
TICK = 3
LONG = 400
"""Seconds that pass in one tick once nothing moves any more, so that deadlines and windows are reached."""

Turn = Callable[["Play"], None]


@dataclass(frozen=True, slots=True)
class Case:
    """A deployment, what people do to it and when (by step), and what is to come of it."""

    deployment: Callable[[], MachineDeploymentBuilder]
    turns: Mapping[int, Turn]
    want: Mapping[str, int]
    in_place: bool = False
    least_old: int = 0
    """Machines of FIRST that must be left at any time (partition)."""
    extra: int = 0
    """Machines that a turn may leave too many (a tolerance, declared)."""


def rolling(replicas: int, surge: int | str = 1, unavailable: int | str = 0, **fields: Any) -> MachineDeploymentBuilder:
    return machine_deployment("md").replicas(replicas).rolling(surge, unavailable).rollout(**fields).kubelet(FIRST)


def template(version: str) -> Turn:
    def turn(play: Play) -> None:
        play.people(f"change the template to {version}", lambda spec: spec["template"]["spec"].update(kubelet(version)))

    return turn


def replicas(count: int) -> Turn:
    def turn(play: Play) -> None:
        play.people(f"scale to {count}", lambda spec: spec.update(replicas=count))

    return turn


def rollout(**fields: Any) -> Turn:
    def turn(play: Play) -> None:
        said = ", ".join(f"{name}: {value}" for name, value in fields.items())
        play.people(f"set {said}", lambda spec: spec["strategy"]["rollingUpdate"].update(fields))

    return turn


def paused(value: bool) -> Turn:
    def turn(play: Play) -> None:
        play.people("pause" if value else "resume", lambda spec: spec.update(paused=value))

    return turn


def delete_one_old() -> Turn:
    def turn(play: Play) -> None:
        old = [m for m in play.world.all(MACHINE) if version_of(m) == FIRST and not is_deleting(m)]
        play.say(f"people delete a Machine of {FIRST}")
        stamp = {"deletionTimestamp": "2026-06-01T12:00:00Z"}
        play.world.change(MACHINE, key_of(min(old, key=key_of)).name, lambda m: m["metadata"].update(stamp))

    return turn


def kubelet(version: str) -> dict[str, Any]:
    return {"versions": {"kubelet": version}}


def version_of(obj: Obj) -> str:
    spec = obj["spec"].get("template", {}).get("spec") or obj["spec"]
    return str(spec["versions"]["kubelet"])


class Watched(World):
    """A world that tells the play of each write, before and after."""

    play: Play

    def apply(self, action: Action) -> None:
        before = self.play.up()
        super().apply(action)
        self.play.wrote(action, before)


@dataclass
class Play:
    """One case in one order."""

    case: Case
    dice: random.Random | None = None
    story: list[str] = field(default_factory=list)
    elapsed: int = 0

    def __post_init__(self) -> None:
        self.world = Watched(self.case.deployment())
        self.world.play = self
        self.spec_bounds: list[tuple[int, int]] = []
        self._still = 0
        self._counted = 0
        self._grow()

    # -- the play

    def run(self) -> Play:
        """Until nothing moves any more; fails if that takes for ever."""
        step = 0
        turns = dict(self.case.turns)
        while step < MOST_STEPS:
            for at in [at for at in turns if at <= step or (self._still >= 4 and at == min(turns))]:
                turns.pop(at)(self)
                self._grow()
                self._still = 0
            if self._still >= 8 and not turns:
                return self
            moved = self._round() if self.dice is None else self._step(self.dice)
            self._still = 0 if moved else self._still + 1
            step += 1
        raise AssertionError(f"not settled after {MOST_STEPS} steps:\n{self.told()}")

    def _round(self) -> int:
        moved = self._deployment() + self._sets()
        moved += self._say_moved(self.world.make_ready(self._good()), "up")
        moved += self._say_moved(self.world.finish_deletions(), "gone")
        moved += self._say_moved(self.world.change_hosts(), "changed in place")
        self._tick(TICK if moved or self._still < 2 else LONG)
        return moved

    def _step(self, dice: random.Random) -> int:
        """One actor, drawn. A round in which nobody does anything is one in which all of them could not."""
        actors = [self._deployment, self._sets, self._one_up, self._one_gone, self._one_changed]
        dice.shuffle(actors)
        for actor in actors:
            if moved := actor():
                self._tick(dice.choice((0, 1, 3)))
                return moved
        self._tick(TICK if self._still < 2 else LONG)
        return 0

    def _one_up(self) -> int:
        return self.world.make_ready(self._some(self._good()))

    def _one_gone(self) -> int:
        going = [m for m in self.world.all(MACHINE) if is_deleting(m)]
        return self.world.finish_deletions(self._some(going))

    def _one_changed(self) -> int:
        return self.world.change_hosts(1)

    def _some(self, machines: list[Obj]) -> list[Obj]:
        waiting = [m for m in machines if is_deleting(m) or not (m.get("status") or {}).get("nodeRef")]
        assert self.dice is not None
        return self.dice.sample(waiting, self.dice.randint(1, len(waiting))) if waiting else []

    def _good(self) -> list[Obj]:
        return [m for m in self.world.all(MACHINE) if version_of(m) != BROKEN]

    def _deployment(self) -> int:
        before = len(self.world.writes)
        plan = plan_for(self.world.view(), MACHINE_DEPLOYMENT, "md")
        now = {key_of(b).name: b for b in self.world.all(MACHINE_SET)}
        counted = len(self.up())
        self.world.run(plan)
        changes = [
            f"{version_of(now[name])} {now[name]['spec']['replicas']} → {size}"
            for name, size in sizes_in(plan).items()
            if now[name]["spec"]["replicas"] != size
        ]
        if changes:
            self._counted = counted
            self.say(f"MachineDeployment: {', '.join(sorted(changes))}")
        return len(self.world.writes) - before

    def _sets(self) -> int:
        before = len(self.world.writes)
        for body in sorted(self.world.all(MACHINE_SET), key=version_of):
            self.world.run(plan_for(self.world.view(), MACHINE_SET, key_of(body).name))
        return len(self.world.writes) - before

    def _tick(self, seconds: int) -> None:
        self.elapsed += seconds
        self.world.advance(seconds)

    # -- people and the story

    def people(self, what: str, change: Callable[[dict[str, Any]], Any]) -> None:
        self.say(f"people {what}")
        self.world.change(MACHINE_DEPLOYMENT, "md", lambda body: change(body["spec"]))

    def say(self, what: str) -> None:
        self.story.append(f"{self.elapsed:5}s  {what}")

    def _say_moved(self, count: int, how: str) -> int:
        if count:
            self.say(f"Machines: {count} {how}; now {self.standing()}")
        return count

    def standing(self) -> str:
        """``v1.34.0 3/3 v1.35.0 0/1``: Machines that are up, of those that are there."""
        up = set(self.up())
        found: dict[str, list[int]] = {}
        for machine in self.world.all(MACHINE):
            if not is_deleting(machine):
                counts = found.setdefault(version_of(machine), [0, 0])
                counts[0] += key_of(machine).name in up
                counts[1] += 1
        return ", ".join(f"{version} {up}/{all_}" for version, (up, all_) in sorted(found.items())) or "none"

    def told(self) -> str:
        return "\n".join(self.story) + "\n"

    # -- what must hold

    def up(self) -> list[str]:
        return [key_of(m).name for m in self.world.all(MACHINE) if self._is_up(m)]

    def _is_up(self, machine: Obj) -> bool:
        found = {c["type"]: c for c in conditions_of(machine)}
        if is_deleting(machine) or found.get("Ready", {}).get("status") != "True":
            return False
        return bool(found["UpToDate"]["observedGeneration"] == machine["metadata"].get("generation", 1))

    def _grow(self) -> None:
        """Bounds that were in force at some time since the play began: a set may act on the size of before."""
        spec = self.world.get(MACHINE_DEPLOYMENT, "md")["spec"]
        limits = spec["strategy"]["rollingUpdate"]
        count = spec["replicas"]
        self.spec_bounds.append((count + _of(limits.get("maxSurge", 1), count, up=True), count))
        self.spec_bounds.append((0, max(count - _of(limits.get("maxUnavailable", 0), count, up=False), 0)))

    def wrote(self, action: Action, before: list[str]) -> None:
        """A Machine that came up after sizes were decided was counted on by nobody: it may go again."""
        self._tell(action)
        if isinstance(action, Create) and action.kind == MACHINE:
            alive = [m for m in self.world.all(MACHINE) if not is_deleting(m)]
            most = max(most for most, _ in self.spec_bounds) + self.case.extra
            assert len(alive) <= most, f"{len(alive)} Machines, at most {most}\n{self.told()}"
        if isinstance(action, Delete | Patch) and len(self.up()) < len(before):
            least = min(self._counted, *(least for most, least in self.spec_bounds if not most))
            assert len(self.up()) >= least, f"{len(self.up())} up, at least {least}: {action.why}\n{self.told()}"
        if isinstance(action, Delete) and action.target.kind == MACHINE:
            assert not self.case.in_place, f"a Machine is replaced though in place is required\n{self.told()}"
        if isinstance(action, Delete) and action.target.kind == MACHINE and self.case.least_old:
            old = [m for m in self.world.all(MACHINE) if version_of(m) == FIRST and not is_deleting(m)]
            assert len(old) >= self.case.least_old, f"{len(old)} old ones left: {action.why}\n{self.told()}"

    def _tell(self, action: Action) -> None:
        if isinstance(action, Create) and action.kind == MACHINE_SET:
            self.say(
                f"MachineDeployment: new MachineSet {version_of(action.body)} of {action.body['spec']['replicas']}"
            )
        elif isinstance(action, Event) and action.type == "Warning":
            self.say(f"MachineDeployment: {action.why}")
        elif isinstance(action, Patch) and action.target.kind == MACHINE and "spec" in action.patch:
            self.say(f"MachineSet: a Machine becomes {action.patch['spec']['versions']['kubelet']}")
        elif isinstance(action, Patch) and "template" in (action.patch.get("spec") or {}):
            change = action.patch["spec"]["template"].get("spec") or {}
            if "versions" in change:
                self.say(f"MachineDeployment: its MachineSet becomes {change['versions']['kubelet']}")

    def versions(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for machine in self.world.all(MACHINE):
            found[version_of(machine)] = found.get(version_of(machine), 0) + 1
        return found


def _of(value: int | str, total: int, *, up: bool) -> int:
    if isinstance(value, int):
        return value
    hundredths = int(value.removesuffix("%")) * total
    return -(-hundredths // 100) if up else hundredths // 100


def in_place(policy: str) -> Mapping[str, Any]:
    return {"inPlace": policy}


CASES: dict[str, Case] = {
    "3 replicas one more at a time": Case(lambda: rolling(3), {6: template(SECOND)}, {SECOND: 3}),
    "3 replicas one less at a time": Case(lambda: rolling(3, 0, 1), {6: template(SECOND)}, {SECOND: 3}),
    "12 replicas with surge 3 and unavailable 1": Case(lambda: rolling(12, 3, 1), {6: template(SECOND)}, {SECOND: 12}),
    "6 replicas and the template changes midway": Case(
        lambda: rolling(6, 2, 1), {6: template(SECOND), 9: template(THIRD)}, {THIRD: 6}
    ),
    "6 replicas and back midway": Case(lambda: rolling(6, 2, 1), {6: template(SECOND), 9: template(FIRST)}, {FIRST: 6}),
    "6 replicas scaled up to 12 midway": Case(
        lambda: rolling(6, 3, 1), {6: template(SECOND), 9: replicas(12)}, {SECOND: 12}
    ),
    "12 replicas scaled down to 6 midway": Case(
        lambda: rolling(12, 3, 1), {6: template(SECOND), 9: replicas(6)}, {SECOND: 6}
    ),
    "6 replicas paused and resumed": Case(
        lambda: rolling(6, 2, 1), {6: template(SECOND), 8: paused(True), 20: paused(False)}, {SECOND: 6}
    ),
    "10 replicas with a canary of 2 and then the rest": Case(
        lambda: rolling(10, 2, 0, partition="80%"), {6: template(SECOND), 30: rollout(partition=0)}, {SECOND: 10}
    ),
    "10 replicas with a canary of 2 that stays": Case(
        lambda: rolling(10, 2, 0, partition=8), {6: template(SECOND)}, {FIRST: 8, SECOND: 2}, least_old=8
    ),
    "4 replicas with a broken template taken back": Case(
        lambda: rolling(4, 1, 1, onFailure="Rollback").progress_deadline(600), {6: template(BROKEN)}, {FIRST: 4}
    ),
    "4 replicas with a broken template and then a good one": Case(
        lambda: rolling(4, 1, 1, onFailure="Rollback").progress_deadline(600),
        {6: template(BROKEN), 60: template(THIRD)},
        {THIRD: 4},
    ),
    "3 replicas on delete": Case(
        lambda: rolling(3).on_delete().rollout(),
        {6: template(SECOND), 12: delete_one_old(), 24: delete_one_old(), 36: delete_one_old()},
        {SECOND: 3},
    ),
    "6 replicas in place and 2 may be down": Case(
        lambda: rolling(6, 1, 2, **in_place("Require")), {6: template(SECOND)}, {SECOND: 6}, in_place=True
    ),
    "4 replicas in place with a surge": Case(
        lambda: rolling(4, 1, 0, **in_place("Prefer")), {6: template(SECOND)}, {SECOND: 4}
    ),
    "6 replicas in place and the template changes midway": Case(
        lambda: rolling(6, 0, 2, **in_place("Require")),
        {6: template(SECOND), 8: template(THIRD)},
        {THIRD: 6},
        in_place=True,
    ),
    "6 replicas in place and back midway": Case(
        lambda: rolling(6, 0, 1, **in_place("Require")),
        {6: template(SECOND), 9: template(FIRST)},
        {FIRST: 6},
        in_place=True,
    ),
    "6 replicas in place and then not any more": Case(
        lambda: rolling(6, 1, 1, **in_place("Prefer")), {6: template(SECOND), 8: rollout(inPlace="Never")}, {SECOND: 6}
    ),
    "8 replicas with a budget of 1": Case(lambda: rolling(8, 0, 4).budget(1), {6: template(SECOND)}, {SECOND: 8}),
}


def golden_of(name: str) -> Path:
    return GOLDEN / f"{name.replace(' ', '-')}.txt"


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for title, one in CASES.items():
        golden_of(title).write_text(Play(one).run().told())
