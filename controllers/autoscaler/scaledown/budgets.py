"""How many of the Nodes that could go do go now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from controllers.autoscaler.resource_limits import MILLI
from controllers.autoscaler.scaledown.eligibility import Context, Needed, Staying
from controllers.kernel.conditions import counted
from controllers.scheduling.removal import Removed
from controllers.scheduling.shapes import CPU, MEMORY


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """``leaving``: Nodes that are on their way out already. ``nodes`` more may go, ``drains`` of them with pods.

    ``cores`` (in thousandths) and ``memory`` (bytes) may be lost by all together.
    With ``parallel`` 10, ``parallel_drains`` 2 and one Node on its way: 9 more may go, one of them drained.
    """

    leaving: int
    nodes: int
    drains: int
    cores: int
    memory: int


def budgets_of(context: Context) -> Budgets:
    cluster, limits = context.cluster, context.cluster.options.growth
    leaving = sum(1 for state in cluster.groups for m in state.machines if m.node_name and state.is_going(m))
    return Budgets(
        leaving=leaving,
        nodes=max(0, cluster.options.shrink.parallel - leaving),
        drains=cluster.options.shrink.parallel_drains - leaving,
        cores=sum(node.amount(CPU) for node in context.nodes.values()) - limits.cores.least * MILLI,
        memory=sum(node.amount(MEMORY) for node in context.nodes.values()) - limits.memory.least,
    )


def at_once(context: Context, names: Iterable[str], *, budgets: Budgets) -> tuple[list[str], dict[str, Staying]]:
    """Without the Nodes of a whole group that is too large to go beside those that are going: it waits for them."""
    names = list(names)
    sizes = Counter(group for name in names if (group := context.atomic_group(name)))
    waits = {group for group, size in sizes.items() if budgets.leaving and size > budgets.nodes}
    staying: dict[str, Staying] = {}
    for name in names:
        group = context.atomic_group(name)
        if group in waits:
            why = f"{sizes[group]} Nodes go at once, when the {budgets.leaving} that are going have gone"
            staying[name] = Staying(Needed.OTHER, why)
    return [name for name in names if name not in staying], staying


def crop(
    context: Context, removed: Iterable[Removed], *, budgets: Budgets
) -> tuple[list[Sequence[Removed]], dict[str, Staying]]:
    """Units of what goes together, in the order in which they go; and why the others wait."""
    cores, memory, drains = budgets.cores, budgets.memory, budgets.drains
    at_a_time = context.cluster.options.shrink.parallel_drains
    going: list[Sequence[Removed]] = []
    staying: dict[str, Staying] = {}
    for unit in _units(context, removed):
        nodes = [context.nodes[each.node] for each in unit]
        of_cores, of_memory = (sum(node.amount(what) for node in nodes) for what in (CPU, MEMORY))
        if of_cores > cores or of_memory > memory:
            why = "the cluster would have less cores or memory than it must have"
            staying |= _all(unit, Staying(Needed.MINIMAL_LIMIT, why))
            continue
        cores, memory = cores - of_cores, memory - of_memory
        drained = sum(1 for each in unit if each.pods)
        if drained > drains and (len(unit) == 1 or drains < at_a_time):
            why = f"{counted(at_a_time, 'Node is', 'Nodes are')} drained at a time"
            staying |= _all(unit, Staying(Needed.OTHER, why))
            continue
        drains -= drained
        going.append(unit)
    return going, staying


def _units(context: Context, removed: Iterable[Removed]) -> list[Sequence[Removed]]:
    """A Node alone, or all of a group that is scaled as a whole."""
    units: dict[str, list[Removed]] = {}
    for each in removed:
        units.setdefault(context.atomic_group(each.node) or f"Node {each.node}", []).append(each)
    return list(units.values())


def _all(unit: Iterable[Removed], staying: Staying) -> dict[str, Staying]:
    return {removed.node: staying for removed in unit}
