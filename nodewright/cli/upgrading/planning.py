"""The plan for one cluster's upgrade: what is asked for on paper, what comes of it, and what to type next. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from controllers.kernel.version import Version, dotted, parse
from nodewright.cli.dryrun.foresee import Prospect
from nodewright.cli.upgrading.kubernetes import Cluster, Next, Part, judged, lagging, next_versions, waits


@dataclass(frozen=True, slots=True)
class Move:
    """One part that gets another version. ``waits``: for what, "" if it may begin. ``foreseen``: by the controllers."""

    part: Part
    version: str
    waits: str
    foreseen: Prospect | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """``asked``: the judgement of the version that was asked for; None: none was. ``under_way``: what has to end first,
    "" if nothing is. ``moves``: in their order; ``commands``: to be typed next.
    """

    cluster: Cluster
    asked: Next | None
    offered: tuple[Next, ...]
    under_way: str
    moves: tuple[Move, ...]
    commands: tuple[str, ...]

    @property
    def refused(self) -> bool:
        return self.asked is not None and bool(self.asked.refused)


def plan_of(cluster: Cluster, version: str, prospects: Iterable[Prospect] = ()) -> Plan:
    """``version`` "": what may come next, and the workers that may follow their control plane already."""
    asked = judged(cluster, version) if version else None
    offered = () if asked is not None else next_versions(cluster)
    under_way = _under_way(cluster)
    found = {(each.kind, each.key): each for each in prospects}
    moves = tuple(
        Move(part, wanted, waits(cluster, part, wanted), found.get((part.kind, part.key)))
        for part, wanted in desired(cluster, version)
    )
    return Plan(cluster, asked, offered, under_way, moves, tuple(_commands(cluster, version, moves, under_way)))


def desired(cluster: Cluster, version: str) -> list[tuple[Part, str]]:
    """Which part is to get which version, in order; none for a version that is refused."""
    if not version:
        oldest = cluster.oldest_plane
        return [(part, dotted(oldest)) for part in lagging(cluster)] if oldest is not None else []
    wanted = parse(version)
    if wanted is None or judged(cluster, version).refused:
        return []
    listed = sorted(cluster.planes, key=lambda part: part.runs or ()) + list(cluster.workers)
    return [(part, dotted(wanted)) for part in listed if part.asked is not None and part.asked < wanted]


def on_paper(wanted: Sequence[tuple[Part, str]]) -> tuple[dict[str, Any], ...]:
    """The edits as objects to apply onto those of the cluster."""
    return tuple(
        {
            "apiVersion": part.kind.api_version,
            "kind": part.kind.name,
            "metadata": {"namespace": part.key.namespace, "name": part.key.name},
            **part.patch(version),
        }
        for part, version in wanted
    )


def _under_way(cluster: Cluster) -> str:
    for part in cluster.planes:
        if part.asked is not None and part.runs and part.runs[0] != part.asked:
            return f"{part.title} is on its way from {dotted(part.runs[0])} to {dotted(part.asked)}"
    return ""


def _commands(cluster: Cluster, version: str, moves: Sequence[Move], under_way: str) -> list[str]:
    name, space = cluster.key.name, cluster.key.namespace
    if under_way:
        return [f"nodewright describe cluster {name} -n {space}"]
    may_begin = [move for move in moves if not move.waits]
    if may_begin:
        first = may_begin[0]
        alike = [move for move in may_begin if not move.part.plane] if not first.part.plane else [first]
        return [move.part.command(move.version) for move in alike]
    if version or cluster.newest_plane is None:
        return []
    newest: Version = cluster.newest_plane
    return [f"nodewright upgrade plan {name} -n {space} --kubernetes-version {newest[0]}.{newest[1]}.{newest[2] + 1}"]
