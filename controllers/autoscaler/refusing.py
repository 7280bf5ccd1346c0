"""A pod that no group helps: what each group lacks, in numbers, and what would change the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from controllers.autoscaler.cluster_state import ClusterState, GroupState
from controllers.autoscaler.projected import ProjectedCluster, project
from controllers.autoscaler.scale_up import Left
from controllers.scheduling.refusals import NOT_SELECTED, UNTOLERATED
from controllers.scheduling.shapes import CPU, EPHEMERAL_STORAGE, MEMORY, PodInfo

_BYTES = frozenset((MEMORY, EPHEMERAL_STORAGE))


@dataclass(frozen=True, slots=True)
class Answer:
    """A sentence, and what it rests on."""

    text: str
    below: tuple[Answer, ...] = ()


@dataclass(frozen=True, slots=True)
class Shortage:
    """A pod needs ``need`` of a resource, and an empty new Node of ``group`` leaves ``leaves`` (below need)."""

    group: str
    resource: str
    need: int
    leaves: int

    @property
    def met(self) -> float:
        """2.4 of 3 cores: 0.8."""
        return max(0, self.leaves) / self.need


def refused(cluster: ClusterState, left: Left) -> Iterator[Answer]:
    """``left`` has a reason for each group."""
    projected, states = project(cluster), {state.id: state for state in cluster.groups}
    pod, reasons, best = left.pods[0], [], list[Shortage]()
    for group, why in left.why.items():
        found = list(_shortages(states.get(group), projected, pod=pod)) if "nsufficient" in why or "pods" in why else []
        reasons.append(Answer(f"{group}: {why}", tuple(Answer(_numbers(each)) for each in found)))
        if found and (not best or _worst(found) > _worst(best)):
            best = found
    yield Answer("stays pending: no group helps", tuple(reasons))
    changes = tuple(dict.fromkeys([*_with_more(best), *_with_others(left.why.items())]))
    if changes:
        yield Answer("what would change that", tuple(map(Answer, changes)))


def _shortages(state: GroupState | None, projected: ProjectedCluster, *, pod: PodInfo) -> Iterator[Shortage]:
    """Against an empty Node: what pods of DaemonSets take of it is gone."""
    if state is None or state.template is None:
        return
    daemons = projected.daemons_on(state.template)
    for resource, need in pod.kind.demand.requests:
        taken = sum(dict(each.requests).get(resource, 0) for each in daemons)
        leaves = state.template.amount(resource) - taken
        if need > leaves:
            yield Shortage(state.id, resource, need, leaves)


def _worst(found: Iterable[Shortage]) -> float:
    return min(each.met for each in found)


def _numbers(short: Shortage) -> str:
    needs, leaves = (amount(short.resource, number) for number in (short.need, max(0, short.leaves)))
    return f"needs {needs} {short.resource}, an empty Node of it leaves {leaves}"


def _with_more(best: list[Shortage]) -> Iterator[str]:
    """``best``: of the group that comes nearest."""
    if not best:
        return
    asked = " and ".join(f"{amount(each.resource, max(0, each.leaves))} {each.resource}" for each in best)
    needed = " and ".join(f"{amount(each.resource, each.need)} {each.resource}" for each in best)
    if all(each.leaves > 0 for each in best):
        yield f"the pod asks for at most {asked}: so much leaves {best[0].group}, the best one"
    yield f"a group whose empty Nodes leave {needed}"


def _with_others(why: Iterable[tuple[str, str]]) -> Iterator[str]:
    for group, text in why:
        if text.startswith("it has its maximum"):
            yield f"a higher maximum of {group}"
        elif text == str(UNTOLERATED):
            yield f"a toleration of the pod for the taints of {group}"
        elif text == str(NOT_SELECTED):
            yield f"labels of the Nodes of {group} that the pod's node selector and affinity ask for"
        elif text.startswith("it rests until"):
            yield f"the end of the rest of {group}, or a place for its next Node"


def amount(resource: str, number: int) -> str:
    """2400 thousandths of a core: ``2.4``; bytes as ``1.5Gi`` or ``300Mi``; others as they are."""
    if resource == CPU:
        return f"{number / 1000:g}"
    if resource in _BYTES:
        return f"{number / 1024**3:.4g}Gi" if number >= 1024**3 else f"{number / 1024**2:.4g}Mi"
    return str(number)
