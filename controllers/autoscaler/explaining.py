"""Why does nothing happen? Of a pod, a group or a Node: what is decided about it, and every reason for a no."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from controllers.autoscaler.health import hopeless, upcoming
from controllers.autoscaler.loop import why_not
from controllers.autoscaler.observe import GroupState, is_unschedulable
from controllers.autoscaler.plan import Decision, plan
from controllers.autoscaler.requests import consumed_by
from controllers.autoscaler.standing import Standing
from controllers.autoscaler.telling import problems_of
from controllers.kernel.conditions import format_time
from controllers.kernel.refs import Key, Obj, Ref, key_of
from controllers.kernel.wording import counted
from controllers.scheduling.shapes import CPU, MEMORY, NodeShape, PodShape

_MOST_NODES = 10
"""Nodes of a group that are named one by one for each reason to stay."""


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence, and what it rests on."""

    text: str
    below: tuple[Said, ...] = ()


def explain_pod(standing: Standing, pod: Obj) -> Said:
    title = f"Pod {key_of(pod)}"
    why = _not_considered(standing, pod)
    if why:
        return Said(title, (Said(why),))
    return Said(title, tuple(_pause(standing)) or tuple(_waiting(plan(standing.observed), key_of(pod))))


def explain_group(standing: Standing, ref: Ref) -> Said:
    title = f"{ref.kind.name} {ref.key}"
    left_alone = standing.abroad.get(ref) or standing.paused.get(ref)
    bad = next((bad for bad in standing.observed.bad if bad.ref == ref), None)
    state = next((state for state in standing.observed.groups if state.group.ref == ref), None)
    if left_alone:
        return Said(title, (Said(f"is left alone: {left_alone}"),))
    if bad is not None:
        return Said(title, (Said(f"is no group: {bad.field}: {bad.message}"),))
    if state is None:
        return Said(title, (Said("is no group: no annotation and no --nodes gives it a minimum and a maximum"),))
    paused = tuple(_pause(standing))
    decision = plan(standing.observed)
    return Said(title, (*_size(standing, state), *(paused or _changes(standing, decision, state))))


def explain_node(standing: Standing, name: str) -> Said:
    title = f"Node {name}"
    owners = [(state, m) for state in standing.observed.groups for m in state.machines if m.node_name == name]
    unreadable = standing.observed.unreadable.get(title)
    below = [Said(f"can't be read: {unreadable}")] if unreadable else []
    if not owners:
        return Said(title, (*below, Said("stays: it is no Node of a group")))
    state, machine = owners[0]
    below.append(Said(f"is Machine {machine.key} of {state.id}"))
    return Said(title, (*below, *(tuple(_pause(standing)) or _fate(standing, plan(standing.observed), name))))


def _pause(standing: Standing) -> Iterator[Said]:
    why = why_not(standing)
    if why:
        yield Said(f"nothing is decided: {why}")


def _not_considered(standing: Standing, pod: Obj) -> str:
    """Why it is no pod for which a Node would be added; "" if it is."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    unreadable = standing.observed.unreadable.get(f"Pod {key_of(pod)}")
    if spec.get("nodeName"):
        return f"has a Node: {spec['nodeName']}"
    if status.get("phase") in ("Succeeded", "Failed"):
        return f"is finished: {status['phase']}"
    if unreadable:
        return f"can't be read: {unreadable}"
    if status.get("nominatedNodeName"):
        return f"is about to get Node {status['nominatedNodeName']}, from which others are evicted for it"
    request = consumed_by(pod)
    if request is not None and standing.observed.options.provisioning_requests:
        return f"takes room of ProvisioningRequest {request}, and gets no other"
    if not is_unschedulable(pod):
        return "kube-scheduler has not called it Unschedulable (condition PodScheduled)"
    least = standing.observed.options.growth.expendable_below
    priority = spec.get("priority")
    if isinstance(priority, int) and priority < least:
        return f"its priority is {priority}; pods below {least} get no Node of their own"
    return ""


def _waiting(decision: Decision, key: Key) -> Iterator[Said]:
    if decision.frozen:
        yield Said(f"nothing is scaled: {decision.frozen}")
        return
    for helped in decision.growing.helped:
        if any(_is(pod, key) for pod in helped.pods):
            yield Said(f"{counted(decision.growing.added[helped.group], 'new Node')} of {helped.group} will take it")
            return
    for left in decision.growing.left:
        if any(_is(pod, key) for pod in left.pods):
            reasons = tuple(Said(f"{group}: {why}") for group, why in left.why.items())
            if reasons:
                yield Said("stays pending: no group helps", reasons)
            else:
                yield Said("stays pending: there is no group, or too many pods of other kinds wait to say more")
            return
    yield Said("fits on a Node that is there or on its way, so none is added for it")


def _is(pod: PodShape, key: Key) -> bool:
    return (pod.namespace, pod.name) == (key.namespace, key.name)


def _size(standing: Standing, state: GroupState) -> Iterator[Said]:
    bounds, observed = state.group.bounds, standing.observed
    yield Said(
        f"asks for {counted(state.group.replicas, 'Node')}, between {bounds.min_size} and {bounds.max_size}",
        (
            Said(f"{len(state.joined)} joined, {upcoming(state, observed)} on their way"),
            *(Said(f"Machine {machine.key} is not waited for: {why}") for machine, why in hopeless(state, observed)),
        ),
    )
    if state.template is not None:
        yield Said(f"a new Node would offer {_offer(state.template)}")


def _offer(node: NodeShape) -> str:
    return f"{node.amount(CPU) / 1000:g} cores and {node.amount(MEMORY) / 1024**3:.1f} GiB"


def _changes(standing: Standing, decision: Decision, state: GroupState) -> tuple[Said, ...]:
    if decision.frozen:
        return (Said(f"nothing is scaled: {decision.frozen}"),)
    return (_growth(standing, decision, state), _shrinking(decision, state))


def _growth(standing: Standing, decision: Decision, state: GroupState) -> Said:
    added = decision.growing.added.get(state.id)
    problem = problems_of(standing, decision).get(state.group.ref)
    if added:
        return Said(f"grows by {counted(added, 'Node')}")
    if problem:
        return Said(f"does not grow: {problem[1]}")
    if not decision.growing.helped and not decision.growing.left:
        return Said("does not grow: no pod waits for a Node")
    why = Counter(left.why[state.id] for left in decision.growing.left if state.id in left.why)
    if decision.growing.skipped.get(state.id):
        return Said(f"does not grow: {decision.growing.skipped[state.id]}")
    return Said("does not grow: it helps no pod that waits", tuple(Said(reason) for reason in why))


def _shrinking(decision: Decision, state: GroupState) -> Said:
    shrinking = decision.shrinking
    going = tuple(Said(victim.why) for victim in shrinking.victims if victim.group == state.id)
    if going:
        return Said(f"shrinks by {counted(len(going), 'Machine')}", going)
    nodes = sorted(machine.node_name for machine in state.machines if machine.node_name)
    staying = tuple(
        Said(f"Node {name}: {stays.reason}: {stays.why}")
        for name in nodes[:_MOST_NODES]
        if (stays := shrinking.staying.get(name)) is not None
    )
    more = (Said(f"and {len(nodes) - _MOST_NODES} more"),) if len(nodes) > _MOST_NODES else ()
    return Said(f"does not shrink: {shrinking.cooling}" if shrinking.cooling else "does not shrink", (*staying, *more))


def _fate(standing: Standing, decision: Decision, name: str) -> tuple[Said, ...]:
    if decision.frozen:
        return (Said(f"nothing is scaled: {decision.frozen}"),)
    shrinking, found = decision.shrinking, []
    victim = next((victim for victim in shrinking.victims if victim.node == name), None)
    if victim is not None:
        moves = tuple(Said(f"Pod {move.pod.namespace}/{move.pod.name} moves to {move.to}") for move in victim.moves)
        return (Said(f"goes now: {victim.why}", moves),)
    if name in shrinking.unneeded:
        found.append(Said(f"nobody needs it since {format_time(shrinking.unneeded[name])}"))
    stays = shrinking.staying.get(name)
    if stays is not None:
        found.append(Said(f"stays: {stays.reason}: {stays.why}"))
    if shrinking.cooling:
        found.append(Said(f"no Node goes now: {shrinking.cooling}"))
    if name not in {node.name for node in standing.observed.nodes} and not found:
        found.append(Said("stays: it is not Ready, or it is going already"))
    return tuple(found)
