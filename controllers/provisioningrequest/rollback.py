"""Which Machines go again when a part of a request can't be had, and how they go.

They are chosen once and written down by name, so that no reconcile takes others; then they are marked, and their group
is made smaller by as many. After a crash between two of these steps the next reconcile sees what is left to do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from controllers.autoscaler.cluster_state import ClusterState, GroupState
from controllers.autoscaler.health import unprovisionable
from controllers.autoscaler.observe import Observed
from controllers.autoscaler.requests import Request
from controllers.autoscaler.reservations import Reservation
from controllers.kernel.deletions import removable
from controllers.kernel.refs import Key, Ref
from controllers.scaling.node_group import Obstacle
from controllers.scaling.resize import ByName, Scaler

_COUNTED_TOGETHER = (Scaler.PROVISIONING_REQUEST, Scaler.AUTOSCALER)
"""The autoscaler's own marks are left to it: what it marks it also counts."""
_CLOCKS_DIFFER = timedelta(minutes=1)
"""The API server's clock says when a Machine was made, ours when it was asked for."""


def made_for(
    request: Request, held: Mapping[Ref, Reservation], cluster: ClusterState, spoken_for: Container[Key]
) -> tuple[Key, ...]:
    """Machines that were made for it and that nobody else needs: younger than the request, without pods of others,
    within what it asked for, and no more than the group's minimum allows. ``spoken_for``: those that go for
    other requests.
    """
    found: list[Key] = []
    for state in cluster.groups:
        asked = request.record.groups.get(state.id, 0)
        if asked:
            others = sum(1 for machine in state.machines if machine.key in spoken_for)
            own = [key for key in _of_group(request, state, held, cluster) if key not in spoken_for]
            found += own[: max(0, min(asked, state.group.spare - others))]
    return tuple(found)


def _of_group(request: Request, state: GroupState, held: Mapping[Ref, Reservation], cluster: ClusterState) -> list[Key]:
    """Those that will be no Node first, then those that are none yet, then Nodes; the youngest first."""
    since = request.record.since
    young = [m for m in state.machines if since is None or m.created > since - _CLOCKS_DIFFER]
    young = [m for m in young if not (state.is_going(m) or m.annotated or m.protected)]
    young.sort(key=lambda machine: (machine.created, machine.key), reverse=True)
    lost = {machine.key for machine, _ in unprovisionable(state, cluster)}
    others = [reservation for ref, reservation in held.items() if ref != request.ref]
    theirs = {name for reservation in others for name in reservation.nodes}
    busy = {
        pod.node for pod in cluster.workload.pods if not pod.kind.keeping.daemon_set and not pod.kind.keeping.mirror
    }
    coming = [m for m in young if not m.node_name and m.key not in lost]
    promised = sum(reservation.upcoming.get(state.id, 0) for reservation in others)
    free = coming[: max(0, len(coming) - promised)]
    nodes = [m for m in young if m.node_name and m.node_name not in theirs and m.node_name not in busy]
    return [machine.key for machine in ([m for m in young if m.key in lost] + free + nodes)]


@dataclass(frozen=True, slots=True)
class Leaving:
    """``going`` and ``staying``: Machines to mark, or whose mark is taken back. ``fewer``: group → replicas less.
    ``marked``: our marks are still about.
    """

    going: tuple[ByName, ...] = ()
    staying: tuple[ByName, ...] = ()
    fewer: Mapping[str, int] = field(default_factory=dict)
    marked: bool = False


def still_here(keys: Iterable[Key], observed: Observed) -> tuple[Key, ...]:
    """Those that are not on their way out yet. Not those that were protected meanwhile: they stay.

    A group that may not shrink any more keeps its own; of one that is left alone for now nobody knows, and it is waited
    for.
    """
    groups = observed.cluster.groups
    known = {machine.key: state for state in groups for machine in state.machines}
    alive = {machine.key for state in groups for machine in removable(state.machines)}
    going = {key for key in alive if known[key].surplus or known[key].group.spare}
    return tuple(key for key in keys if key in going or (observed.scope.paused and key not in known))


def plan_leaving(leaving: Iterable[Key], cluster: ClusterState) -> Leaving:
    """Nothing is done to a group that has yet to let Machines go, or in which somebody else marked one to go first."""
    wanted = set(leaving)
    going: list[ByName] = []
    staying: list[ByName] = []
    fewer: Counter[str] = Counter()
    marked = {state.id: state.marked_by(Scaler.PROVISIONING_REQUEST) for state in cluster.groups}
    for state in cluster.groups:
        obstacles = state.obstacles(*_COUNTED_TOGETHER)
        if Obstacle.SURPLUS in obstacles:
            continue
        ours = [machine for machine in removable(state.machines) if machine.key in wanted]
        if ours and not obstacles:
            going += [ByName(machine, "its ProvisioningRequest is rolled back") for machine in ours]
            fewer[state.id] = min(len(ours), state.group.spare)
        unwanted = (machine for machine in marked[state.id] if machine.key not in wanted)
        staying += [ByName(machine, "its ProvisioningRequest is gone") for machine in unwanted]
    less = {name: count for name, count in fewer.items() if count}
    return Leaving(going=tuple(going), staying=tuple(staying), fewer=less, marked=any(marked.values()))
