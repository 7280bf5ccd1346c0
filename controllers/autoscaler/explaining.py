"""Why does nothing happen? Of a pod, a group or a Node: what is decided about it, and every reason for a no."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from controllers.autoscaler.cluster_state import ClusterState
from controllers.autoscaler.health import unprovisionable, upcoming
from controllers.autoscaler.loop import why_not
from controllers.autoscaler.observe import GroupState, is_unschedulable
from controllers.autoscaler.plan import Decision, plan
from controllers.autoscaler.reporting import problems_of
from controllers.autoscaler.requests import consumed_by
from controllers.kernel.conditions import format_time
from controllers.kernel.refs import Key, Obj, Ref, key_of
from controllers.kernel.wording import counted
from controllers.scheduling.shapes import CPU, MEMORY, NodeShape, PodShape

_MOST_NODES = 10
"""Nodes of a group that are named one by one for each reason to stay."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A sentence, and what it rests on."""

    text: str
    below: tuple[Answer, ...] = ()


def explain_pod(cluster_state: ClusterState, pod: Obj) -> Answer:
    title = f"Pod {key_of(pod)}"
    why = _not_considered(cluster_state, pod)
    if why:
        return Answer(title, (Answer(why),))
    return Answer(title, tuple(_pause(cluster_state)) or tuple(_waiting(plan(cluster_state.observed), key_of(pod))))


def explain_group(cluster_state: ClusterState, ref: Ref) -> Answer:
    title = f"{ref.kind.name} {ref.key}"
    left_alone = cluster_state.elsewhere.get(ref) or cluster_state.paused.get(ref)
    bad = next((bad for bad in cluster_state.observed.bad if bad.ref == ref), None)
    state = next((state for state in cluster_state.observed.groups if state.group.ref == ref), None)
    if left_alone:
        return Answer(title, (Answer(f"is left alone: {left_alone}"),))
    if bad is not None:
        return Answer(title, (Answer(f"is no group: {bad.field}: {bad.message}"),))
    if state is None:
        return Answer(title, (Answer("is no group: no annotation and no --nodes gives it a minimum and a maximum"),))
    paused = tuple(_pause(cluster_state))
    decision = plan(cluster_state.observed)
    return Answer(title, (*_size(cluster_state, state), *(paused or _changes(cluster_state, decision, state))))


def explain_node(cluster_state: ClusterState, name: str) -> Answer:
    title = f"Node {name}"
    owners = [(state, m) for state in cluster_state.observed.groups for m in state.machines if m.node_name == name]
    unreadable = cluster_state.observed.unreadable.get(title)
    below = [Answer(f"can't be read: {unreadable}")] if unreadable else []
    if not owners:
        return Answer(title, (*below, Answer("stays: it is no Node of a group")))
    state, machine = owners[0]
    below.append(Answer(f"is Machine {machine.key} of {state.id}"))
    return Answer(
        title, (*below, *(tuple(_pause(cluster_state)) or _fate(cluster_state, plan(cluster_state.observed), name)))
    )


def _pause(cluster_state: ClusterState) -> Iterator[Answer]:
    why = why_not(cluster_state)
    if why:
        yield Answer(f"nothing is decided: {why}")


def _not_considered(cluster_state: ClusterState, pod: Obj) -> str:
    """Why it is no pod for which a Node would be added; "" if it is."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    unreadable = cluster_state.observed.unreadable.get(f"Pod {key_of(pod)}")
    if spec.get("nodeName"):
        return f"has a Node: {spec['nodeName']}"
    if status.get("phase") in ("Succeeded", "Failed"):
        return f"is finished: {status['phase']}"
    if unreadable:
        return f"can't be read: {unreadable}"
    if status.get("nominatedNodeName"):
        return f"is about to get Node {status['nominatedNodeName']}, from which others are evicted for it"
    request = consumed_by(pod)
    if request is not None and cluster_state.observed.options.provisioning_requests:
        return f"takes room of ProvisioningRequest {request}, and gets no other"
    if not is_unschedulable(pod):
        return "kube-scheduler has not called it Unschedulable (condition PodScheduled)"
    least = cluster_state.observed.options.growth.expendable_below
    priority = spec.get("priority")
    if isinstance(priority, int) and priority < least:
        return f"its priority is {priority}; pods below {least} get no Node of their own"
    return ""


def _waiting(decision: Decision, key: Key) -> Iterator[Answer]:
    if decision.frozen:
        yield Answer(f"nothing is scaled: {decision.frozen}")
        return
    for helped in decision.growing.helped:
        if any(_is(pod, key) for pod in helped.pods):
            yield Answer(f"{counted(decision.growing.added[helped.group], 'new Node')} of {helped.group} will take it")
            return
    for left in decision.growing.left:
        if any(_is(pod, key) for pod in left.pods):
            reasons = tuple(Answer(f"{group}: {why}") for group, why in left.why.items())
            if reasons:
                yield Answer("stays pending: no group helps", reasons)
            else:
                yield Answer("stays pending: there is no group, or too many pods of other kinds wait to say more")
            return
    yield Answer("fits on a Node that is there or on its way, so none is added for it")


def _is(pod: PodShape, key: Key) -> bool:
    return (pod.namespace, pod.name) == (key.namespace, key.name)


def _size(cluster_state: ClusterState, state: GroupState) -> Iterator[Answer]:
    bounds, observed = state.group.bounds, cluster_state.observed
    yield Answer(
        f"asks for {counted(state.group.replicas, 'Node')}, between {bounds.min_size} and {bounds.max_size}",
        (
            Answer(f"{len(state.joined)} joined, {upcoming(state, observed)} on their way"),
            *(
                Answer(f"Machine {machine.key} is not waited for: {why}")
                for machine, why in unprovisionable(state, observed)
            ),
        ),
    )
    if state.template is not None:
        yield Answer(f"a new Node would offer {_offer(state.template)}")


def _offer(node: NodeShape) -> str:
    return f"{node.amount(CPU) / 1000:g} cores and {node.amount(MEMORY) / 1024**3:.1f} GiB"


def _changes(cluster_state: ClusterState, decision: Decision, state: GroupState) -> tuple[Answer, ...]:
    if decision.frozen:
        return (Answer(f"nothing is scaled: {decision.frozen}"),)
    return (_growth(cluster_state, decision, state), _shrinking(decision, state))


def _growth(cluster_state: ClusterState, decision: Decision, state: GroupState) -> Answer:
    added = decision.growing.added.get(state.id)
    problem = problems_of(cluster_state, decision).get(state.group.ref)
    if added:
        return Answer(f"grows by {counted(added, 'Node')}")
    if problem:
        return Answer(f"does not grow: {problem[1]}")
    if not decision.growing.helped and not decision.growing.left:
        return Answer("does not grow: no pod waits for a Node")
    why = Counter(left.why[state.id] for left in decision.growing.left if state.id in left.why)
    if decision.growing.skipped.get(state.id):
        return Answer(f"does not grow: {decision.growing.skipped[state.id]}")
    return Answer("does not grow: it helps no pod that waits", tuple(Answer(reason) for reason in why))


def _shrinking(decision: Decision, state: GroupState) -> Answer:
    shrinking = decision.shrinking
    going = tuple(Answer(victim.why) for victim in shrinking.victims if victim.group == state.id)
    if going:
        return Answer(f"shrinks by {counted(len(going), 'Machine')}", going)
    nodes = sorted(machine.node_name for machine in state.machines if machine.node_name)
    staying = tuple(
        Answer(f"Node {name}: {stays.reason}: {stays.why}")
        for name in nodes[:_MOST_NODES]
        if (stays := shrinking.staying.get(name)) is not None
    )
    more = (Answer(f"and {len(nodes) - _MOST_NODES} more"),) if len(nodes) > _MOST_NODES else ()
    return Answer(
        f"does not shrink: {shrinking.cooldown}" if shrinking.cooldown else "does not shrink", (*staying, *more)
    )


def _fate(cluster_state: ClusterState, decision: Decision, name: str) -> tuple[Answer, ...]:
    if decision.frozen:
        return (Answer(f"nothing is scaled: {decision.frozen}"),)
    shrinking, found = decision.shrinking, []
    victim = next((victim for victim in shrinking.victims if victim.node == name), None)
    if victim is not None:
        moves = tuple(Answer(f"Pod {move.pod.namespace}/{move.pod.name} moves to {move.to}") for move in victim.moves)
        return (Answer(f"goes now: {victim.why}", moves),)
    if name in shrinking.unneeded:
        found.append(Answer(f"nobody needs it since {format_time(shrinking.unneeded[name])}"))
    stays = shrinking.staying.get(name)
    if stays is not None:
        found.append(Answer(f"stays: {stays.reason}: {stays.why}"))
    if shrinking.cooldown:
        found.append(Answer(f"no Node goes now: {shrinking.cooldown}"))
    if name not in {node.name for node in cluster_state.observed.nodes} and not found:
        found.append(Answer("stays: it is not Ready, or it is going already"))
    return tuple(found)
