"""Which Nodes one new Node could take the place of, and what that would save.

Prices of the table count where all that is compared has one; sizes where nothing of it has: then the new Node has less
of everything than the old ones together. Nothing else is compared, so each consolidation makes the cluster cheaper by
the same measure, and none is ever taken back by another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from controllers.autoscaler.cluster_state import GroupState
from controllers.autoscaler.scale_up import Growth
from controllers.autoscaler.scaledown.budgets import budgets_of
from controllers.autoscaler.scaledown.eligibility import Context, eligible
from controllers.autoscaler.scaledown.planner import question_of
from controllers.scheduling.removal import Candidate, RemovalQuestion, Removed, hindered, plan_removal
from controllers.scheduling.shapes import CPU, MEMORY, NodeInfo

_MOST_TARGETS = 20
"""Kinds of new Nodes that are tried in one look, the cheapest first; trying is slow."""
_MOST_SOURCES = 50
"""Nodes that are tried together for each of them, the least used first."""
_ANY = 1 << 30
NOTHING = "no Node could take the place of others"


@dataclass(frozen=True, slots=True, order=True)
class Gain:
    """``saved``: by the hour, as the table of prices counts; 0 where sizes are compared. ``share`` of the old Nodes."""

    saved: Fraction
    share: Fraction

    def __str__(self) -> str:
        return f"{float(self.share):.0%} {'cheaper' if self.saved else 'smaller'}"


@dataclass(frozen=True, slots=True)
class Replacement:
    """One Node more of ``state``, like ``new``, for all that are ``removed``, in this order."""

    state: GroupState
    new: NodeInfo
    removed: tuple[Removed, ...]
    gain: Gain

    @property
    def nodes(self) -> list[str]:
        return sorted(each.node for each in self.removed)


def best(context: Context, growth: Growth) -> Replacement | str:
    """What saves most; else why there is nothing."""
    sources = _sources(context)
    if not sources:
        return "no Node may go"
    found: list[Replacement] = []
    for state in _targets(context, growth):
        for names in _tries(context, state, sources):
            each = _tried(context, state, names)
            if each is not None:
                found.append(each)
    least = _least(context)
    good = [each for each in found if each.gain.share >= least and not _too_small(context, each)]
    if good:
        return min(good, key=lambda each: (-each.gain.saved, -each.gain.share, each.state.is_new, each.state.id))
    most = max((each.gain.share for each in found), default=Fraction(0))
    return f"the best saves {float(most):.0%}, less than {float(least):.0%}" if most > 0 else NOTHING


def judged(context: Context, growth: Growth, *, state: GroupState, names: Sequence[str]) -> Replacement | str:
    """Whether one Node of the group could take the place of just these; else why not."""
    why = _no_target(state, growth)
    lacking = set(names) - set(_sources(context))
    if why or lacking:
        return why or f"Node {min(lacking)} may not go"
    found = _tried(context, state, names)
    if found is None or len(found.removed) < len(names):
        return "their pods would not all find a place"
    return _too_little(context, found.gain) or _too_small(context, found) or found


def why_not_now(context: Context, state: GroupState, *, names: Sequence[str]) -> str:
    """Why not all of these could go, one after the other, now that the new Node is there; "" if they can."""
    gain = gain_of(context, state, names)
    if gain is None or (why := _too_little(context, gain)):
        return why if gain is not None else "prices can't be compared"
    lacking = set(names) - set(_sources(context))
    if lacking:
        return f"Node {min(lacking)} may not go now"
    question = _patient(context, names)
    removed = plan_removal(question, context.projected.snapshot, context.pods_by_node).removed
    return "" if len(removed) == len(names) else "not all of their pods find a place now"


def gain_of(context: Context, state: GroupState, names: Iterable[str]) -> Gain | None:
    """None: it can't be compared."""
    names, template = list(names), state.template
    choosing = context.cluster.options.growth.choosing
    if template is None or not names:
        return None
    new = choosing.price(state.id, template)
    prices = [choosing.price(context.group_of(name).id, context.nodes[name]) for name in names]
    known = [price for price in prices if price is not None]
    if new is None and not known:
        return Gain(Fraction(0), _smaller(template, [context.nodes[name] for name in names]))
    if new is None or len(known) < len(prices):
        return None
    total = sum(known, Fraction(0))
    return Gain(total - new, (total - new) / total) if total else Gain(Fraction(0), Fraction(0))


def _too_little(context: Context, gain: Gain) -> str:
    least = _least(context)
    return f"it would save {float(gain.share):.0%}, less than {float(least):.0%}" if gain.share < least else ""


def _least(context: Context) -> Fraction:
    return Fraction(str(context.cluster.options.consolidation.least_gain))


def _smaller(new: NodeInfo, old: Sequence[NodeInfo]) -> Fraction:
    """By which share at least the new Node has less of each resource; below 0: it has more of some."""
    left = []
    for name, amount in new.allocatable:
        if amount and (name in (CPU, MEMORY) or "/" in name):
            before = sum(node.amount(name) for node in old)
            left.append(1 - Fraction(amount, before) if before else Fraction(-1))
    return min(left, default=Fraction(0))


def _sources(context: Context) -> list[str]:
    """Nodes that may go, and whose pods may move."""
    names = [name for name in eligible(context)[0] if not context.atomic_group(name)]
    kept = hindered(question_of(context, _candidates(context, names)), context.pods_by_node)
    left = [name for name in names if name not in kept]
    return sorted(left, key=lambda name: (context.pods_by_node.load(context.nodes[name]), name))


def _targets(context: Context, growth: Growth) -> Iterator[GroupState]:
    """One group of those whose Nodes are alike, the cheapest and smallest first."""
    choosing, own = context.cluster.options.growth.choosing, context.cluster.own
    known: dict[object, tuple[tuple[object, ...], GroupState]] = {}
    for state in (*context.cluster.groups, *own.in_place):
        template = state.template
        if template is None or _no_target(state, growth):
            continue
        price = choosing.price(state.id, template)
        like = (price, template.allocatable, tuple(sorted(template.labels.items())), template.taints)
        size = (price is None, price or 0, template.amount(CPU), template.amount(MEMORY), state.id)
        known.setdefault(like, (size, state))
    in_order = sorted(known.values(), key=lambda each: each[0])
    return (state for _, state in in_order[:_MOST_TARGETS])


def _no_target(state: GroupState, growth: Growth) -> str:
    if state.is_whole:
        return f"{state.id} is scaled as a whole"
    return state.unsettled or growth.refusal(state)


def _tries(context: Context, state: GroupState, sources: Sequence[str]) -> Iterator[list[str]]:
    """All that can be compared, the least used first; and those alone for each of which it would be a gain."""
    alone = {name: gain for name in sources if (gain := gain_of(context, state, [name])) is not None}
    comparable = list(alone)[:_MOST_SOURCES]
    dear = sorted((name for name in alone if alone[name].share > 0), key=lambda name: alone[name], reverse=True)
    if comparable:
        yield comparable
    if dear and set(dear) != set(comparable):
        yield dear[:_MOST_SOURCES]


def _tried(context: Context, state: GroupState, names: Sequence[str]) -> Replacement | None:
    """Those of ``names`` that could go, one after the other, beside one Node more of the group; None: there is none."""
    template, snapshot = state.template, context.projected.snapshot
    if template is None:
        return None
    domain = next(iter(state.zone_order.after(state.unmade, 1)), "") if state.zone_order else ""
    node = state.zone_order.node(template, domain) if state.zone_order else template
    snapshot.fork()
    try:
        row = snapshot.add_nodes(node)
        for daemon in context.projected.daemons_on(node):
            snapshot.place(daemon, row)
        question = replace(_patient(context, names), upcoming=(row,))
        found = plan_removal(question, snapshot, context.pods_by_node).removed
    finally:
        snapshot.revert()
    gain = gain_of(context, state, [removed.node for removed in found])
    return Replacement(state, node, found, gain) if gain is not None else None


def _patient(context: Context, names: Iterable[str]) -> RemovalQuestion:
    """Nodes go one after the other, and budgets are filled up in between: each is asked for alone (``hindered``)."""
    question = question_of(context, _candidates(context, names))
    return replace(question, budgets=[replace(budget, allowed=_ANY) for budget in question.budgets])


def _candidates(context: Context, names: Iterable[str]) -> list[Candidate]:
    return [Candidate(name, context.group_of(name).id) for name in names]


def _too_small(context: Context, found: Replacement) -> str:
    """The cluster must keep its least of cores and memory, or the old Nodes could not go in the end."""
    limits = budgets_of(context)
    nodes: list[NodeInfo] = [context.nodes[name] for name in found.nodes]
    spare: Mapping[str, int] = {CPU: limits.cores, MEMORY: limits.memory}
    for name, left in spare.items():
        if sum(node.amount(name) for node in nodes) - found.new.amount(name) > left:
            return "the cluster would have less cores or memory than it must have"
    return ""
