"""Failures with one cause in common: a zone, the network, an API. Replacing Machines then helps nobody.

A Machine whose clock still runs counts as bad here: of a zone that went dark, one Machine is always the first.
Machines that failed by themselves (no such flavor, a broken host) say nothing of others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from controllers.kernel.conditions import counted
from controllers.machinehealthcheck.health import Unhealthy, is_bad
from controllers.machinehealthcheck.observe import Target

MIN_FLEET = 4
"""Of fewer Machines than this in all, any number may fail by chance."""
MIN_ZONE = 3
"""The same of one zone."""


@dataclass(frozen=True, slots=True)
class Freeze:
    """``fleet``: why none at all may be replaced, "" if some may; ``zones``: why none of a zone may."""

    fleet: str = ""
    zones: Mapping[str, str] = field(default_factory=dict)

    def why(self, target: Target) -> str:
        """Why ``target`` may not be replaced now, "" if it may. What a person asked for is not held up."""
        if isinstance(target.verdict, Unhealthy) and target.verdict.asked:
            return ""
        return self.fleet or self.zones.get(target.zone, "")

    def __str__(self) -> str:
        return self.fleet or "; ".join(self.zones[zone] for zone in sorted(self.zones))


NO_FREEZE = Freeze()


def freeze(targets: Iterable[Target]) -> Freeze:
    """More than half of all Machines, or of a zone while elsewhere no more than half are."""
    zones: dict[str, list[bool]] = defaultdict(list)
    for target in targets:
        zones[target.zone].append(_tells_of_others(target))
    fleet = [bad for found in zones.values() for bad in found]
    if len(fleet) >= MIN_FLEET and _most(fleet):
        return Freeze(f"{_of(fleet)} look bad at once: so does an outage that replacing Machines would not end")
    dark = {
        zone: f"{_of(found)} of zone {zone} look bad at once: it looks like the zone"
        for zone, found in zones.items()
        if zone and len(found) >= MIN_ZONE and len(found) < len(fleet) and _most(found)
    }
    return Freeze("", dark) if dark else NO_FREEZE


def _tells_of_others(target: Target) -> bool:
    return is_bad(target.verdict) and not (isinstance(target.verdict, Unhealthy) and target.verdict.alone)


def _most(found: list[bool]) -> bool:
    return 2 * sum(found) > len(found)


def _of(found: list[bool]) -> str:
    return f"{sum(found)} of {counted(len(found), 'Machine')}"
