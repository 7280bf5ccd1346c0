"""Which of several node groups grows, where more than one would help. Expanders are filters, asked one after the other.

| name | keeps the options that |
|---|---|
| `least-waste` | leave least cpu and memory of the new Nodes unused, both as shares, added |
| `most-pods` | help most pods |
| `least-nodes` | add fewest Nodes |
| `price` | cost least for what their pods are worth |
| `priority` | stand highest in the list of priorities |
| `random` | one of them, by the seed |

Of what is left after the last one, a group that is there goes before one that would have to be made; then the seed
decides, so that the same world gives the same choice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from api.yamltext import shown
from controllers.autoscaler.prices import PriceTable
from controllers.kernel.memory import digest
from controllers.scheduling.binpacking import Estimate
from controllers.scheduling.classes import PodClass
from controllers.scheduling.shapes import CPU, MEMORY, PODS, Amounts, NodeInfo


@dataclass(frozen=True, slots=True)
class Option:
    """A group with what it would take. ``price``: of one Node, None if it is unknown. ``in_zone_order``: the Nodes are
    meant one by one, each in its failure domain.
    """

    group: str
    node: NodeInfo
    estimate: Estimate
    price: Fraction | None = None
    in_zone_order: bool = False
    new: bool = False
    """The group would have to be made."""
    cost: Fraction | None = None
    """Of all its Nodes, each as cheap as can be; None: ``price`` of each."""


@dataclass(frozen=True, slots=True)
class Choosing:
    """``names`` in the order in which they filter; ``priorities``: number → patterns of group ids, highest wins.

    ``prices``: what the Nodes of groups cost.
    """

    names: tuple[str, ...] = ("least-waste",)
    seed: str = ""
    priorities: Mapping[int, Sequence[re.Pattern[str]]] = field(default_factory=dict)
    prices: PriceTable = field(default_factory=PriceTable)

    def price(self, group: str, node: NodeInfo) -> Fraction | None:
        """Price of one Node for an hour; None if it is not known."""
        price = self.prices.node(group, node.labels)
        return None if price is None else Fraction(str(price))


class ExpanderError(ValueError):
    """An expander that nobody knows, or one after ``random``."""


def choose(options: Sequence[Option], choosing: Choosing) -> Option | None:
    """The best option; None if there is none. Raises ExpanderError."""
    left = [option for option in options if option.estimate.nodes]
    for name in checked(choosing.names):
        if len(left) > 1:
            left = _FILTERS[name](left, choosing)
    return _drawn([option for option in left if not option.new] or left, choosing.seed) if left else None


def checked(names: Sequence[str]) -> Sequence[str]:
    """The same names; raises ExpanderError for those that can't be."""
    for position, name in enumerate(names):
        if name not in _FILTERS:
            raise ExpanderError(f"no expander is called {name!r}; there are {', '.join(sorted(_FILTERS))}")
        if name == "random" and position < len(names) - 1:
            raise ExpanderError(f"nothing may follow random, which leaves one option; found {names[position + 1]!r}")
    return names


_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,9}\Z", re.ASCII)


def priorities_of(found: Mapping[Any, Any]) -> dict[int, list[re.Pattern[str]]]:
    """The map of the ConfigMap's key ``priorities``. Raises ExpanderError naming the entry."""
    read: dict[int, list[re.Pattern[str]]] = {}
    for number, patterns in found.items():
        if isinstance(number, bool) or not _WHOLE_NUMBER.match(str(number)):
            raise ExpanderError(f"priorities[{shown(number)}]: the priority must be a whole number")
        if not isinstance(patterns, list):
            raise ExpanderError(f"priorities[{number}]: must be a list of patterns")
        for index, text in enumerate(patterns):
            try:
                read.setdefault(int(str(number)), []).append(re.compile(text))
            except (re.error, TypeError) as error:
                raise ExpanderError(f"priorities[{number}][{index}]: {shown(str(error))}") from None
    return read


def wasted(option: Option) -> Fraction:
    """Unused shares of cpu and memory of the new Nodes, added: 0 to 2."""
    waste = Fraction(0)
    for name in (CPU, MEMORY):
        offered = option.node.amount(name) * option.estimate.nodes
        asked = sum(dict(each.requests).get(name, 0) * count for each, count in option.estimate.placed.items())
        waste += Fraction(offered - asked, offered) if offered else 0
    return waste


def _least_wasted(options: list[Option], _: Choosing) -> list[Option]:
    """Groups that are alike have the same estimate, which is looked into once."""
    known: dict[tuple[int, Amounts], Fraction] = {}

    def waste(option: Option) -> Fraction:
        like = (id(option.estimate), option.node.allocatable)
        found = known.get(like)
        if found is None:
            found = known[like] = wasted(option)
        return found

    return _least(options, waste)


def _least(options: list[Option], key: Callable[[Option], Fraction | float]) -> list[Option]:
    keys = [key(option) for option in options]
    best = min(keys)
    return [option for option, found in zip(options, keys, strict=True) if found == best]


def _cheapest(options: list[Option], _: Choosing) -> list[Option]:
    """For what the pods are worth that are helped; options without a price go last.

    Not per pod: the smallest pods on the smallest Nodes cost least then, and those that could share large Nodes
    are left alone on them.
    """
    priced = [option for option in options if option.price is not None]
    if not priced:
        return options
    worth = _worth(priced)

    def cost(option: Option) -> float:
        total = (option.price or 0) * option.estimate.nodes if option.cost is None else option.cost
        return float(total) / (sum(worth[each] * count for each, count in option.estimate.placed.items()) or 1.0)

    return _least(priced, cost)


def _worth(priced: Sequence[Option]) -> dict[PodClass, float]:
    """Class → the least share of a Node's price that one pod takes: of cpu, memory, pods or another resource that of
    which it takes most. 2 of 4 cores of a Node for 1.0: 0.5.
    """
    kinds = {(id(each.estimate), each.node.allocatable, each.price): each for each in priced}
    worth: dict[PodClass, float] = {}
    for option in kinds.values():
        price, there = float(option.price or 0), dict(option.node.allocatable)
        for pod_class in option.estimate.placed:
            shares = (amount / there[name] for name, amount in ((PODS, 1), *pod_class.requests) if there.get(name))
            found = price * max(shares, default=0.0)
            worth[pod_class] = min(found, worth.get(pod_class, found))
    return worth


def _first_in_list(options: list[Option], choosing: Choosing) -> list[Option]:
    """Groups that no pattern names are left out, unless that leaves none."""
    for number in sorted(choosing.priorities, reverse=True):
        patterns = choosing.priorities[number]
        found = [option for option in options if any(pattern.search(option.group) for pattern in patterns)]
        if found:
            return found
    return options


def _drawn(options: Sequence[Option], seed: str) -> Option:
    return min(options, key=lambda option: digest([seed, option.group], 16))


_FILTERS: dict[str, Callable[[list[Option], Choosing], list[Option]]] = {
    "least-waste": _least_wasted,
    "most-pods": lambda options, _: _least(options, lambda option: -option.estimate.pods),
    "least-nodes": lambda options, _: _least(options, lambda option: option.estimate.nodes),
    "price": _cheapest,
    "priority": _first_in_list,
    "random": lambda options, choosing: [_drawn(options, choosing.seed)],
}
