"""Why does nothing happen? The decision about a pod, a group or a Node, with every reason for a refusal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from controllers.autoscaler.cluster_state import GroupState, is_unschedulable
from controllers.autoscaler.consolidation import names_of
from controllers.autoscaler.decision import Decision
from controllers.autoscaler.health import unprovisionable, upcoming
from controllers.autoscaler.observe import Observed
from controllers.autoscaler.plan import decide, why_not
from controllers.autoscaler.refusing import Answer, refused
from controllers.autoscaler.requests import consumed_by
from controllers.autoscaler.status import problems_of
from controllers.kernel.conditions import counted, format_time
from controllers.kernel.refs import Key, Obj, Ref, key_of
from controllers.scheduling.shapes import CPU, MEMORY, NodeInfo, PodInfo

_MOST_NODES = 10
"""Nodes of a group that are named one by one for each reason to stay."""


def explain_pod(observed: Observed, pod: Obj) -> Answer:
    title = f"Pod {key_of(pod)}"
    why = _not_considered(observed, pod)
    if why:
        return Answer(title, (Answer(why),))
    return Answer(
        title, tuple(_pause(observed)) or tuple(_waiting(observed, decide(observed.cluster), key=key_of(pod)))
    )


def explain_group(observed: Observed, ref: Ref) -> Answer:
    title = f"{ref.kind.name} {ref.key}"
    left_alone = observed.scope.elsewhere.get(ref) or observed.scope.paused.get(ref)
    bad = next((bad for bad in observed.cluster.bad if bad.ref == ref), None)
    state = next((state for state in observed.cluster.groups if state.group.ref == ref), None)
    if left_alone:
        return Answer(title, (Answer(f"is left alone: {left_alone}"),))
    if bad is not None:
        return Answer(title, (Answer(f"is no group: {bad.field}: {bad.message}"),))
    if state is None:
        return Answer(title, (Answer("is no group: no annotation and no --nodes gives it a minimum and a maximum"),))
    paused = tuple(_pause(observed))
    decision = decide(observed.cluster)
    return Answer(title, (*_size(observed, state), *(paused or _changes(observed, decision, state))))


def explain_node(observed: Observed, name: str) -> Answer:
    title = f"Node {name}"
    owners = [(state, m) for state in observed.cluster.groups for m in state.machines if m.node_name == name]
    unreadable = observed.cluster.unreadable.get(title)
    below = [Answer(f"can't be read: {unreadable}")] if unreadable else []
    if not owners:
        return Answer(title, (*below, Answer("stays: it is no Node of a group")))
    state, machine = owners[0]
    below.append(Answer(f"is Machine {machine.key} of {state.id}"))
    start = state.starting.get(name)
    if start is not None:
        late = start.is_late(observed.cluster.now)
        below.append(Answer(f"{'has not started in its time' if late else 'is starting'}: {start.why}"))
    return Answer(title, (*below, *(tuple(_pause(observed)) or _fate(observed, decide(observed.cluster), name=name))))


def _pause(observed: Observed) -> Iterator[Answer]:
    why = why_not(observed)
    if why:
        yield Answer(f"nothing is decided: {why}")


def _not_considered(observed: Observed, pod: Obj) -> str:
    """Why it is no pod for which a Node would be added; "" if it is."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    unreadable = observed.cluster.unreadable.get(f"Pod {key_of(pod)}")
    if spec.get("nodeName"):
        return f"has a Node: {spec['nodeName']}"
    if status.get("phase") in ("Succeeded", "Failed"):
        return f"is finished: {status['phase']}"
    if unreadable:
        return f"can't be read: {unreadable}"
    nominated = status.get("nominatedNodeName")
    if any(node.name == nominated for node in observed.cluster.workload.nodes):
        return f"is about to get Node {nominated}, from which others are evicted for it"
    request = consumed_by(pod)
    if request is not None and observed.cluster.options.provisioning_requests:
        return f"takes room of ProvisioningRequest {request}, and gets no other"
    if not is_unschedulable(pod):
        return "kube-scheduler has not called it Unschedulable (condition PodScheduled)"
    least = observed.cluster.options.growth.expendable_below
    priority = spec.get("priority")
    if isinstance(priority, int) and priority < least:
        return f"its priority is {priority}; pods below {least} get no Node of their own"
    return ""


def _waiting(observed: Observed, decision: Decision, *, key: Key) -> Iterator[Answer]:
    if decision.frozen:
        yield Answer(f"nothing is scaled: {decision.frozen}")
        return
    for helped in decision.scale_up.helped:
        if any(_is(pod, key) for pod in helped.pods):
            yield Answer(f"{counted(decision.scale_up.added[helped.group], 'new Node')} of {helped.group} will take it")
            return
    for left in decision.scale_up.left:
        if any(_is(pod, key) for pod in left.pods):
            if left.gang:
                yield Answer(f"stays pending: {left.gang}", tuple(Answer(f"{g}: {why}") for g, why in left.why.items()))
            elif left.why:
                yield from refused(observed.cluster, left)
            else:
                yield Answer("stays pending: there is no group, or too many pods of other kinds wait to say more")
            return
    yield Answer("fits on a Node that is there or on its way, so none is added for it")


def _is(pod: PodInfo, key: Key) -> bool:
    return (pod.namespace, pod.name) == (key.namespace, key.name)


def _size(observed: Observed, state: GroupState) -> Iterator[Answer]:
    bounds, cluster = state.group.bounds, observed.cluster
    awaited = state.awaited(cluster.now)
    yield Answer(
        f"asks for {counted(state.group.replicas, 'Node')}, between {bounds.min_size} and {bounds.max_size}",
        (
            Answer(
                f"{len(state.joined) - len(awaited)} joined, {upcoming(state, cluster) + len(awaited)} on their way"
            ),
            *(
                Answer(f"Node {name} is {'waited for' if name in awaited else 'not waited for any longer'}: {node.why}")
                for name, node in sorted(state.starting.items())[:_MOST_NODES]
            ),
            *(
                Answer(f"Machine {machine.key} is not waited for: {why}")
                for machine, why in unprovisionable(state, cluster)
            ),
        ),
    )
    if state.template is not None:
        yield Answer(f"a new Node would offer {_offer(state.template)}")


def _offer(node: NodeInfo) -> str:
    return f"{node.amount(CPU) / 1000:g} cores and {node.amount(MEMORY) / 1024**3:.1f} GiB"


def _changes(observed: Observed, decision: Decision, state: GroupState) -> tuple[Answer, ...]:
    if decision.frozen:
        return (Answer(f"nothing is scaled: {decision.frozen}"),)
    return (_growth(observed, decision, state=state), _shrinking(decision, state))


def _growth(observed: Observed, decision: Decision, *, state: GroupState) -> Answer:
    added = decision.scale_up.added.get(state.id)
    begins = decision.consolidation.begins
    if begins is not None and begins.id == state.id:
        return Answer(f"grows by {counted((added or 0) + 1, 'Node')}", (Answer(decision.consolidation.why),))
    problem = problems_of(observed, decision).get(state.group.ref)
    if added:
        ample = decision.scale_up.ample.why(state.id)
        return Answer(f"grows by {counted(added, 'Node')}", (Answer(ample),) if ample else ())
    if problem:
        return Answer(f"does not grow: {problem[1]}")
    if not decision.scale_up.helped and not decision.scale_up.left:
        return Answer("does not grow: no pod waits for a Node")
    why = Counter(left.why[state.id] for left in decision.scale_up.left if state.id in left.why)
    if decision.scale_up.skipped.get(state.id):
        return Answer(f"does not grow: {decision.scale_up.skipped[state.id]}")
    return Answer("does not grow: it helps no pod that waits", tuple(Answer(reason) for reason in why))


def _shrinking(decision: Decision, state: GroupState) -> Answer:
    shrinking = decision.scale_down
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


def _consolidated(observed: Observed, decision: Decision, *, name: str) -> Iterator[Answer]:
    """Whether one new Node is to take its place, or why none does."""
    consolidation = decision.consolidation
    if consolidation.why and observed.cluster.options.consolidation.enabled:
        is_old = name in names_of(consolidation, observed.cluster)
        yield Answer(f"{'is to be replaced' if is_old else 'is not replaced by a cheaper one'}: {consolidation.why}")


def _fate(observed: Observed, decision: Decision, *, name: str) -> tuple[Answer, ...]:
    if decision.frozen:
        return (Answer(f"nothing is scaled: {decision.frozen}"),)
    shrinking, found = decision.scale_down, []
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
    found += _consolidated(observed, decision, name=name)
    if name not in {node.name for node in observed.cluster.workload.nodes} and not found:
        found.append(Answer("stays: it is not Ready, or it is going already"))
    return tuple(found)
