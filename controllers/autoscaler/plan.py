"""Observed → Decision: first the Nodes that are missing, then those that are too many, and what to remember of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from controllers.autoscaler.growth import Growing, plan_growth
from controllers.autoscaler.health import resting, unhealthy
from controllers.autoscaler.memory import Addition, Memory
from controllers.autoscaler.observe import Observed
from controllers.autoscaler.projected import project
from controllers.autoscaler.shrinking import Shrinking, Victim, plan_shrinking
from controllers.kernel.actions import Action, Event
from controllers.kernel.plan import Step
from controllers.kernel.refs import POD, Key, Ref
from controllers.kernel.wording import counted
from controllers.scaling.delete_marks import Scaler
from controllers.scaling.resize import ByName, Resize, Scaling
from controllers.scheduling.shapes import PodShape

MOST_EVENTS = 50
"""Pods that are told in one reconcile which group grew for them."""


@dataclass(frozen=True, slots=True)
class Decision:
    """``steps`` in order; ``memory`` has to be kept before the first of them. ``frozen``: why nothing is decided."""

    memory: Memory
    growing: Growing = field(default_factory=Growing)
    shrinking: Shrinking = field(default_factory=Shrinking)
    steps: tuple[Step, ...] = ()
    frozen: str = ""

    def change_of(self, group: str) -> int:
        """Nodes that the group gets more, or fewer."""
        fewer = sum(1 for victim in self.shrinking.victims if victim.group == group)
        return self.growing.added.get(group, 0) - fewer


def plan(observed: Observed) -> Decision:
    trouble = unhealthy(observed)
    if trouble:
        return Decision(
            Memory({}, observed.memory.backoffs, observed.memory.grown, observed.memory.shrunk_at), frozen=trouble
        )
    backoffs = resting(observed)
    projected = project(observed)
    growing = plan_growth(observed, projected, backoffs)
    shrinking = plan_shrinking(observed, projected, bool(growing.added))
    left = any(victim.node for victim in shrinking.victims)
    memory = Memory(
        shrinking.unneeded,
        backoffs,
        _additions(observed, growing),
        observed.now if left else observed.memory.shrunk_at,
    )
    return Decision(memory, growing, shrinking, _steps(observed, growing, shrinking))


def _additions(observed: Observed, growing: Growing) -> tuple[Addition, ...]:
    """What the rate and the delays still look at."""
    reach = max(observed.options.growth.window, observed.options.shrink.delay_after_add)
    kept = tuple(each for each in observed.memory.grown if observed.now - each.at <= reach)
    nodes = sum(growing.added.values())
    return (*kept, Addition(observed.now, nodes)) if nodes else kept


def _steps(observed: Observed, growing: Growing, shrinking: Shrinking) -> tuple[Step, ...]:
    """Marks before sizes, so that no other Machine goes; sizes before the events that speak of them."""
    events = [*_growth_events(observed, growing), *_shrink_events(observed, shrinking.victims)]
    return Scaling(
        scaler=Scaler.AUTOSCALER,
        going=[ByName(victim.machine, victim.why) for victim in shrinking.victims],
        staying=[ByName(machine, "it is needed after all") for machine in shrinking.unmarked],
        sizes=_sizes(observed, growing, shrinking),
    ).steps(events)


def _sizes(observed: Observed, growing: Growing, shrinking: Shrinking) -> list[Resize]:
    """One per group that gets another size."""
    fewer = Counter(victim.group for victim in shrinking.victims)
    found: list[Resize] = []
    for state in observed.groups:
        more, less = growing.added.get(state.id, 0), fewer[state.id]
        if more == less:
            continue
        said = [f"{counted(more, 'Node')} more for pods that find no place"] if more else []
        said += [f"{counted(less, 'Machine')} not needed or without hope"] if less else []
        size = state.group.replicas + more - less
        found.append(Resize(group=state.group, replicas=size, why="; ".join(said)))
    return found


def _growth_events(observed: Observed, growing: Growing) -> Iterable[Action]:
    refs = {state.id: state.group for state in observed.groups}
    for name, nodes in growing.added.items():
        before = refs[name].replicas
        why = f"{name} goes from {before} to {before + nodes} (maximum {refs[name].bounds.max_size})"
        yield Event(refs[name].ref, "Normal", "ScaledUpGroup", why)
    told = [(helped.group, pod) for helped in growing.helped for pod in helped.pods]
    for name, pod in told[:MOST_EVENTS]:
        yield Event(ref_of_pod(pod), "Normal", "TriggeredScaleUp", f"new Nodes of {name} will take it")


def _shrink_events(observed: Observed, victims: Iterable[Victim]) -> Iterable[Action]:
    for victim in victims:
        if victim.node:
            yield Event(victim.machine.ref, "Normal", "ScaleDown" if victim.moves else "ScaleDownEmpty", victim.why)


def ref_of_pod(pod: PodShape) -> Ref:
    return Ref(POD, Key(pod.namespace, pod.name), pod.uid)
