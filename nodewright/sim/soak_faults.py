"""What goes wrong in a week, drawn from the seed before it begins; and what people do meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, is_deleting, key_of
from nodewright.sim.plane import Plane
from nodewright.sim.users import DEPLOYMENT, VERSIONS
from providers.simulated.config import Cloud

if TYPE_CHECKING:
    from nodewright.sim.soak import Soak

ZONES = ("a", "b", "c")
QUIET = 0.9
"""Share of the week in which troubles begin; the rest is for their ends."""


@dataclass(frozen=True, slots=True)
class SoakFault:
    """``after``: from the beginning of the week. ``kind`` is what a table counts, ``says`` what the trace tells."""

    after: timedelta
    kind: str
    says: str
    strike: Callable[[Soak], None]


def draw(random: Random, soak: timedelta) -> list[SoakFault]:
    """The troubles of a week (fewer of a shorter time), in order."""
    share = soak / timedelta(days=7)
    found: list[SoakFault] = []
    for kind, number, one in _MENU:
        for _ in range(max(1, round(number * share))):
            says, strike = one(random)
            found.append(SoakFault(soak * QUIET * random.random(), kind, says, strike))
    return sorted(found, key=lambda trouble: trouble.after)


Strike = tuple[str, Callable[["Soak"], None]]


def _zone_down(random: Random) -> Strike:
    zone, minutes = random.choice(ZONES), random.uniform(10, 60)

    def strike(soak: Soak) -> None:
        soak.silent_zones.add(zone)
        soak.later(minutes, f"zone {zone} is back", lambda: soak.silent_zones.discard(zone))

    return f"zone {zone} can't be heard for {minutes:.0f} minutes", strike


def _api_down(random: Random) -> Strike:
    minutes = random.uniform(1, 20)

    def strike(soak: Soak) -> None:
        plane = soak.engine.plane
        if plane.down_since is None:
            plane.go_down()
            soak.later(minutes, "the API is back", plane.come_back)

    return f"the API is down for {minutes:.0f} minutes", strike


def _provider_down(random: Random) -> Strike:
    minutes = random.uniform(1, 20)

    def strike(soak: Soak) -> None:
        soak.engine.world.outage(soak.engine.clock() + timedelta(minutes=minutes))

    return f"the provider is down for {minutes:.0f} minutes", strike


def _provider_flaps(random: Random) -> Strike:
    minutes, rate = random.uniform(10, 60), random.uniform(0.05, 0.3)

    def strike(soak: Soak) -> None:
        world = soak.engine.world
        world.adjust(Cloud(error_rate=rate, lost_answer_rate=rate / 2))
        soak.later(minutes, "the provider is well", lambda: world.adjust(Cloud(error_rate=0, lost_answer_rate=0)))

    return f"{rate:.0%} of the provider's calls fail for {minutes:.0f} minutes", strike


def _nodes_flap(random: Random) -> Strike:
    number, minutes = random.randint(1, 10), random.uniform(0.5, 4)

    def strike(soak: Soak) -> None:
        hosts = {host.id for host in soak.some_hosts(number)}
        soak.silent_hosts.update(hosts)
        soak.later(minutes, f"{len(hosts)} nodes are back", lambda: soak.silent_hosts.difference_update(hosts))

    return f"{number} nodes fall silent for {minutes:.1f} minutes", strike


def _host_lost(_random: Random) -> Strike:
    def strike(soak: Soak) -> None:
        for host in soak.some_hosts(1):
            soak.engine.world.lose_host(host.request.identity.machine_uid)

    return "somebody deletes a host in the provider's console", strike


def _machine_deleted(random: Random) -> Strike:
    index = random.randrange(1 << 30)

    def do(plane: Plane) -> None:
        alive = sorted(key_of(machine) for machine in plane.list(MACHINE) if not is_deleting(machine))
        if alive:
            plane.delete(MACHINE, alive[index % len(alive)])

    says = "somebody deletes a Machine"
    return says, lambda soak: soak.by_hand(says, do)


def _edited(says: str, spec: Mapping[str, Any]) -> Strike:
    def do(plane: Plane) -> None:
        plane.patch(MACHINE_DEPLOYMENT, DEPLOYMENT, {"spec": spec})

    return says, lambda soak: soak.by_hand(says, do)


def _rolled(random: Random) -> Strike:
    version = random.choice(VERSIONS)
    return _edited(
        f"somebody rolls all to kubelet {version}", {"template": {"spec": {"versions": {"kubelet": version}}}}
    )


def _scaled(random: Random) -> Strike:
    factor = random.uniform(0.9, 1.1)

    def strike(soak: Soak) -> None:
        _, edit = _edited("somebody scales", {"replicas": round(soak.options.machines * factor)})
        edit(soak)

    return f"somebody scales to {factor:.0%}", strike


def _crashed(_random: Random) -> Strike:
    def strike(soak: Soak) -> None:
        if soak.engine.plane.down_since is None:
            soak.engine.crash("the controllers are killed")

    return "the controllers are killed", strike


_MENU: tuple[tuple[str, int, Callable[[Random], Strike]], ...] = (
    ("zones that can't be heard", 3, _zone_down),
    ("outages of the API", 5, _api_down),
    ("outages of the provider", 10, _provider_down),
    ("times in which the provider flaps", 10, _provider_flaps),
    ("times in which nodes flap", 100, _nodes_flap),
    ("hosts deleted behind our back", 10, _host_lost),
    ("Machines deleted by hand", 20, _machine_deleted),
    ("rollouts", 4, _rolled),
    ("changes of replicas", 12, _scaled),
    ("kills of the controllers", 20, _crashed),
)
