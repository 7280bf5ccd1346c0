"""What a request for another size, or for the end of one machine, means: let the backend do it, or which machines go.

The backend must never pick a victim itself. It would as soon as it gets a size below the machines that it counts,
so it gets a smaller size only when no machine has to go for it any more; each removal names its machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from controllers.cloudpool.matching import Pairs, pair
from controllers.cloudpool.messages import MachineState, PoolMachine, PoolSize
from controllers.cloudpool.world import World
from controllers.kernel.conditions import counted, some_of
from controllers.scheduling.drainability import DrainRules
from controllers.scheduling.removal import Candidate, RemovalPlan, RemovalQuestion, Removed, plan_removal

BOOTING = frozenset({MachineState.REQUESTED, MachineState.PENDING})
_MOST_NAMES = 20


@dataclass(frozen=True, slots=True)
class Rules:
    """Which pods keep their Node."""

    local_storage_blocks: bool = True
    system_pods_block: bool = False
    custom_controllers_block: bool = False


@dataclass(frozen=True, slots=True)
class Observed:
    """``gone``: ids of machines that we had terminated; a backend that answers from a cache may still show them."""

    machines: tuple[PoolMachine, ...]
    world: World
    rules: Rules = Rules()
    gone: frozenset[str] = frozenset()

    @property
    def active(self) -> tuple[PoolMachine, ...]:
        return tuple(machine for machine in self.machines if machine.active and machine.id not in self.gone)


@dataclass(frozen=True, slots=True)
class Victim:
    """A machine that goes; ``node`` is the name of its Node, "" if it has none yet."""

    machine: PoolMachine
    node: str
    why: str


@dataclass(frozen=True, slots=True)
class Forward:
    """The backend may have this size: nobody has to go for it. ``needless``: it has it already."""

    size: int
    why: str
    needless: bool = False


@dataclass(frozen=True, slots=True)
class Shrink:
    """``victims`` go; ``missing`` more should, and ``kept`` says per machine why not."""

    victims: tuple[Victim, ...]
    kept: Mapping[str, str] = field(default_factory=dict)
    missing: int = 0


@dataclass(frozen=True, slots=True)
class NotMember:
    why: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing is done."""

    why: str


def plan_size(observed: Observed, size: PoolSize, desired: int) -> Forward | Shrink | Refused:
    """``size`` is what the backend says of itself.

    Counted are the machines that are active, booting ones too, but no more than the backend wants: those it takes away
    itself are not to go twice.
    """
    active = observed.active
    excess = min(len(active), size.desired) - desired
    if excess <= 0:
        why = f"{desired} machines are wanted and {len(active)} are active"
        return Forward(desired, why, needless=size.desired == desired)
    pairs = pair(observed.machines, observed.world.nodes.values())
    problem = _nothing_pairs(active, pairs)
    if problem:
        return Refused(problem)
    kept = {m.id: why for m in active if (why := _keeps(m, pairs, observed.world))}
    willing = [machine for machine in active if machine.id not in kept]
    victims = [Victim(m, "", f"it is {m.state} and no Node yet") for m in willing if m.id not in pairs.node_of]
    victims = sorted(victims, key=_youngest_first)[:excess]
    candidates = {_node_of(m, pairs): m for m in willing if m.id in pairs.node_of}
    found = _removal(observed, candidates, excess - len(victims))
    victims += (_victim(removed, candidates) for removed in found.removed)
    kept |= {candidates[each.node].id: f"Node {each.node}: {each.why}" for each in found.kept}
    if not victims:
        return Refused(f"found no viable candidates for scaling down: {_reasons(kept)}")
    return Shrink(tuple(victims), kept, excess - len(victims))


def plan_terminate(observed: Observed, machine_id: str) -> Victim | NotMember | Refused:
    """Whether this one machine may go."""
    machine = next((each for each in observed.machines if each.id == machine_id), None)
    if machine is None or not machine.allocated or machine.id in observed.gone:
        state = f" (it is {machine.state})" if machine is not None else ""
        return NotMember(f"no machine {machine_id} is in the pool{state}")
    pairs = pair(observed.machines, observed.world.nodes.values())
    problem = _nothing_pairs(observed.active, pairs) or _keeps(machine, pairs, observed.world)
    if problem:
        return Refused(f"machine {machine_id} is not deemed safe to scale down: {problem}")
    if machine.id not in pairs.node_of:
        return Victim(machine, "", f"it is {machine.state} and no Node yet")
    candidates = {_node_of(machine, pairs): machine}
    found = _removal(observed, candidates, 1)
    if found.removed:
        return _victim(found.removed[0], candidates)
    why = found.kept[0].why
    return Refused(f"machine {machine_id} is not deemed safe to scale down: Node {_node_of(machine, pairs)}: {why}")


def _nothing_pairs(active: tuple[PoolMachine, ...], pairs: Pairs) -> str:
    """Running machines and not one known Node: then the pool and the cluster can't be held against each other."""
    running = [machine for machine in active if machine.state is MachineState.RUNNING]
    if not running or any(machine.id in pairs.node_of for machine in running):
        return ""
    first = running[0].id
    why = f": {pairs.ambiguous[first]}" if first in pairs.ambiguous else ""
    return (
        f"none of the {counted(len(running), 'running machine')} of the pool is any Node by provider ID, name, address "
        f"or external ID, {first} for one{why}"
    )


def _keeps(machine: PoolMachine, pairs: Pairs, world: World) -> str:
    """Why it may not go as far as the pods are not concerned, "" if it may."""
    if machine.doubt:
        return machine.doubt
    if not machine.membership.evictable:
        return "its membershipStatus.evictable is false"
    if machine.id in pairs.ambiguous:
        return f"it is not known which Node it is: {pairs.ambiguous[machine.id]}"
    if machine.id in pairs.node_of:
        name = _node_of(machine, pairs)
        return f"Node {name}: {world.staying[name]}" if name in world.staying else ""
    return "" if machine.state in BOOTING else f"no kubernetes node of machine {machine.id} exists"


def _removal(observed: Observed, candidates: Mapping[str, PoolMachine], most: int) -> RemovalPlan:
    """The shared planning: places for all pods together, budgets spent together, a victim is nobody's new place."""
    world, rules = observed.world, observed.rules
    return plan_removal(
        RemovalQuestion(
            world.shapes,
            world.pods,
            [Candidate(name, first=name in world.unready) for name in candidates],
            DrainRules(
                world.now,
                system_pods_block=rules.system_pods_block,
                local_storage_blocks=rules.local_storage_blocks,
                custom_controllers_block=rules.custom_controllers_block,
            ),
            world.budgets,
            world.namespaces,
            most,
        )
    )


def _victim(removed: Removed, candidates: Mapping[str, PoolMachine]) -> Victim:
    moving = f"{counted(len(removed.pods), 'pod')} of it find room elsewhere" if removed.pods else "it is empty"
    return Victim(candidates[removed.node], removed.node, f"Node {removed.node}: {moving}")


def _node_of(machine: PoolMachine, pairs: Pairs) -> str:
    return str(pairs.node_of[machine.id]["metadata"]["name"])


def _youngest_first(victim: Victim) -> tuple[bool, str]:
    """Requests that nothing came of yet before machines that boot."""
    return victim.machine.state is not MachineState.REQUESTED, victim.machine.id


def _reasons(kept: Mapping[str, str]) -> str:
    sentences = [f"{machine} is not a viable scale-down candidate: {why}" for machine, why in sorted(kept.items())]
    return some_of(sentences, _MOST_NAMES, "; ")
