"""In which failure domains the next Machines of a group will be, as far as that is certain.

A MachineSet gives each new Machine the domain that holds the fewest (``kernel.failure_domains.choose``). Asked with the
same loads, the same function says where Machines go that nobody has made yet. Where anything is under way that may
change the answer, there is none: a wrong zone is worse than none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from controllers.kernel.failure_domains import choose, domains_of, read_resting, rotation_of
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.ownership import cluster_of
from controllers.kernel.refs import Obj, uid_of
from controllers.kernel.view import View
from controllers.scheduling.shapes import NodeInfo

_OF_A_PLACE = ("topology.", "failure-domain.")
"""Labels with these prefixes that say the same as the zone are others' words for it."""


@dataclass(frozen=True, slots=True)
class UpcomingZones:
    """``label``: in which Nodes tell their failure domain. ``open``: domains that take Machines, in the order in which
    the set takes them; ``loads``: how many Machines each has now.
    """

    label: str
    open: tuple[str, ...]
    loads: Mapping[str, int]

    def after(self, made: int, number: int) -> list[str]:
        """Domains of ``number`` Machines, once so many others were made."""
        return choose(self.open, self.loads, made + number)[made:]

    def nowhere(self, node: NodeInfo) -> NodeInfo:
        """Without anything that tells where it is."""
        zone = node.labels.get(self.label)
        kept = {
            key: value
            for key, value in node.labels.items()
            if key != self.label and not (key.startswith(_OF_A_PLACE) and value == zone)
        }
        return replace(node, labels=kept)

    def node(self, template: NodeInfo, domain: str) -> NodeInfo:
        return replace(template, labels={**template.labels, self.label: domain}) if domain else template


def domain_order(body: Obj, sets: Sequence[Obj], *, view: View) -> tuple[str, ...]:
    """() if its Machines don't go to several, or until all of its MachineSets have the list."""
    found = domains_of(body, cluster_of(body, view))
    same_domains = all(domains_of(each, cluster_of(each, view)) == found for each in sets)
    return rotation_of(found, uid_of(body)) if same_domains and len(found) > 1 else ()


def upcoming_zones_of(
    domains: Sequence[str], label: str, *, machines: Collection[MachineFacts], sets: Sequence[Obj], now: datetime
) -> UpcomingZones | None:
    """None if a domain of which something is short, or a Machine that is kept aside, makes it uncertain."""
    active = [machine for machine in machines if not machine.deleting]
    resting = {rest.domain for each in sets for rest in read_resting(each) if rest.until > now}
    uncertain = (resting and len(sets) > 1) or any(m.shortage or m.preserve_until for m in active)
    if not domains or not label or uncertain:
        return None
    open_ = tuple(domain for domain in domains if domain not in resting)
    return UpcomingZones(
        label=label, open=open_ or tuple(domains), loads=Counter(machine.failure_domain for machine in active)
    )
