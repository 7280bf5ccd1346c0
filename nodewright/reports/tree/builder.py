"""Build the tree of one object from a view of the cluster: what it owns, below it; what is not well, beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from api import names
from api.conditions import ControlPlaneCondition, HealthCheckCondition, MachineCondition, SetCondition
from api.names import MachinePhase
from controllers.kernel import view as indexes
from controllers.kernel.conditions import counted, find, format_time, parse_time
from controllers.kernel.node_policy import cluster_key_of, recorded_secret
from controllers.kernel.ownership import controlled
from controllers.kernel.refs import (
    CLUSTER,
    CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_HEALTH_CHECK,
    MACHINE_SET,
    NODE,
    Key,
    Kind,
    Obj,
    is_deleting,
    key_of,
    spec_of,
    uid_of,
)
from controllers.kernel.view import View
from controllers.machinehealthcheck.observe import selected
from controllers.machinehealthcheck.spec import parse_spec
from nodewright.reports.json_parts import part
from nodewright.reports.tree.advice import advice_for
from nodewright.reports.tree.branch import Branch, Mood
from nodewright.reports.tree.health import conditions_of, lines_of, mood_of, mood_of_condition, wants_an_eye
from nodewright.reports.tree.rules import drain_rules

_SUMMARIES = ("Ready", ControlPlaneCondition.READY, "Available", HealthCheckCondition.REMEDIATION_ALLOWED)
"""The condition that stands on an object's own line: the first of these that it has."""
ALIKE = 4
"""So many Machines in the same state and more are shown as one line."""


@dataclass(frozen=True, slots=True)
class DisplayOptions:
    """``every_condition``: also those that are as they should be. ``every_machine``: never several in one line."""

    every_condition: bool = False
    every_machine: bool = False


def grow(kind: Kind, obj: Obj, view: View, display: DisplayOptions) -> Branch:
    """The tree below ``obj``, of ``kind``: a Cluster, what owns Machines, a Machine, or a MachineHealthCheck."""
    return advised_once(_Gardener(view, display).branch(kind, obj), set())


def grow_loose(machines: Iterable[Obj], view: View, display: DisplayOptions) -> Branch:
    """Machines of one namespace that no tree has, below a line without a name; many alike are one line."""
    return advised_once(Branch("", children=tuple(_Gardener(view, display).grouped(machines))), set())


def has_owner(obj: Obj, view: View) -> bool:
    """Whether a MachineSet, MachineDeployment or ControlPlane that is there controls ``obj``, so that its tree has it.

    Machines outlive a set that is deleted in the background (the API server's default) until they are drained.
    """
    namespace = key_of(obj).namespace
    for reference in obj["metadata"].get("ownerReferences") or ():
        kind = next(
            (k for k in (MACHINE_SET, MACHINE_DEPLOYMENT, CONTROL_PLANE) if k.name == reference.get("kind")), None
        )
        if reference.get("controller") and kind is not None:
            owner = view.get(kind, Key(namespace, str(reference.get("name", ""))))
            return owner is not None and uid_of(owner) == reference.get("uid")
    return False


def advised_once(branch: Branch, given: set[str]) -> Branch:
    """The tree with each advice in one place: where the trouble is, not at all that it spoils above; there once."""
    children = tuple(advised_once(child, given) for child in branch.children)
    advice = "" if branch.advice in given else branch.advice
    given.add(branch.advice)
    return replace(branch, children=children, advice=advice)


def shown_once(branch: Branch, given: list[str] | None = None) -> Branch:
    """The tree for a person: what a deletion waits for stands at the top owner, not again at all that it owns.

    Of 30 Machines behind one budget the deployment says why, its set only that, and ``30 Machines`` which.
    """
    given = [] if given is None else given
    kept: list[Branch] = []
    for child in branch.children:
        if child.name == SetCondition.SCALING_DOWN and child.message in given:
            continue
        if child.name == SetCondition.SCALING_DOWN:
            given.append(child.message)
        kept.append(shown_once(child, given))
    names_only = branch.name.endswith(" Machines") and any(_spoken(branch) in text for text in given)
    message = branch.message.removeprefix(_spoken(branch)).strip() if names_only else branch.message
    return replace(branch, children=tuple(kept), message=message)


def _spoken(group: Branch) -> str:
    """The message of a line that stands for several Machines, without their names."""
    return group.message.rpartition(" (")[0]


class _Gardener:
    def __init__(self, view: View, display: DisplayOptions) -> None:
        self._view = view
        self._display = display

    def branch(self, kind: Kind, obj: Obj) -> Branch:
        if kind == MACHINE:
            return self._machine(obj, alone=True)
        below: list[Branch] = []
        if kind == CLUSTER:
            below = self._of_cluster(obj)
        elif kind == MACHINE_DEPLOYMENT:
            below = [*self._planned(obj), *(self.branch(MACHINE_SET, s) for s in self._sets_of(obj))]
        elif kind in (MACHINE_SET, CONTROL_PLANE):
            below = self.grouped(controlled(obj, MACHINE, self._view))
        elif kind == MACHINE_HEALTH_CHECK:
            below = self.grouped(selected(parse_spec(obj), key_of(obj).namespace, self._view))
        return self._line(kind, obj, _counts(obj), below)

    def _planned(self, deployment: Obj) -> Iterator[Branch]:
        """The time at which its Machines are replaced anyway, as long as that is still to come."""
        after = part(spec_of(deployment), "rollout").get("after")
        time = parse_time(after)
        if time is not None and time > self._view.now:
            yield Branch("spec.rollout.after", state=format_time(time), message="its Machines are replaced then")

    def _line(self, kind: Kind, obj: Obj, state: str, below: Iterable[Branch]) -> Branch:
        conditions = conditions_of(obj)
        ready = next(filter(None, (find(conditions, type_) for type_ in _SUMMARIES)), {})
        going = obj["metadata"].get("deletionTimestamp")
        return Branch(
            name=f"{kind.name}/{key_of(obj).name}",
            mood=mood_of(obj),
            state=f"deleting, {state}" if going and state != MachinePhase.DELETING else state,
            reason=str(ready.get("reason", "")) if ready.get("status") != "True" else "",
            since=parse_time(going) or parse_time(ready.get("lastTransitionTime")),
            message=str(ready.get("message", "")) if ready.get("status") != "True" else "",
            advice=advice_for(str(ready.get("reason", ""))) if mood_of_condition(ready) is Mood.BAD else "",
            children=(*lines_of(self._message(conditions, ready), self._display.every_condition), *below),
        )

    def _message(self, conditions: list[Mapping[str, Any]], shown: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Conditions that say more than the object's own line. Under one that is wrong, mere waiting says nothing."""
        if self._display.every_condition:
            return conditions
        message = str(shown.get("message", "")) if shown.get("status") != "True" else ""
        bad = mood_of_condition(shown) is Mood.BAD
        return [
            c
            for c in conditions
            if c is not shown
            and not (c.get("message") and str(c["message"]) in message)
            and not (bad and (mood_of_condition(c) is Mood.BUSY or c.get("reason") == shown.get("reason")))
        ]

    def _of_cluster(self, cluster: Obj) -> list[Branch]:
        key = key_of(cluster)
        mine = [
            (kind, obj)
            for kind in (CONTROL_PLANE, MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE)
            for obj in _by_name(self._view.indexed(kind, indexes.CLUSTER_NAME, str(key)))
        ]
        tops = [(kind, obj) for kind, obj in mine if not has_owner(obj, self._view)]
        branches = [self.branch(kind, obj) for kind, obj in tops if kind != MACHINE]
        branches += self.grouped([obj for kind, obj in tops if kind == MACHINE])
        return branches + [self._line(MACHINE_HEALTH_CHECK, c, _counts(c), ()) for c in self._checks_of(key)]

    def _checks_of(self, cluster: Key) -> list[Obj]:
        """Those that name the Cluster, and those that look at a Machine of it."""
        found: list[Obj] = []
        for check in _by_name(self._view.indexed(MACHINE_HEALTH_CHECK, indexes.NAMESPACE, cluster.namespace)):
            desired = parse_spec(check)
            looked_at = selected(desired, cluster.namespace, self._view)
            if desired.cluster_name == cluster.name or any(cluster_key_of(MACHINE, m) == cluster for m in looked_at):
                found.append(check)
        return found

    def _sets_of(self, deployment: Obj) -> list[Obj]:
        """Newest revision first; old ones that are empty are left out unless everything is asked for."""
        owned = controlled(deployment, MACHINE_SET, self._view)
        shown = [s for s in owned if self._display.every_machine or _in_use(s)] or owned
        return sorted(shown, key=_revision, reverse=True)

    def _machine(self, machine: Obj, alone: bool = False) -> Branch:
        """Drain rules are shown for the requested Machine and for Machines that are being deleted."""
        status = machine.get("status") or {}
        line = self._line(MACHINE, machine, str(status.get("phase") or "Pending"), ())
        if line.mood is Mood.BAD and not line.reason:
            line = replace(
                line,
                reason=str(status.get("failureReason") or status.get("errorReason") or ""),
                message=str(status.get("failureMessage") or status.get("errorMessage") or ""),
            )
        rules = drain_rules(machine, self._view) if alone or is_deleting(machine) else ()
        return replace(line, children=(*line.children, *self._parts_of(machine), *rules))

    def _parts_of(self, machine: Obj) -> Iterable[Branch]:
        """Its host and its Node, as far as they are known."""
        spec, status = machine.get("spec") or {}, machine.get("status") or {}
        provider_id = spec.get("providerID")
        if provider_id:
            addresses = ", ".join(a.get("address", "") for a in status.get("addresses") or ())
            where = f"zone {status['failureDomain']}" if status.get("failureDomain") else ""
            yield Branch(f"Host/{provider_id}", state=addresses, message=where)
        replaced = status.get("replacement")
        if replaced:
            yield Branch("Replacement", Mood.BUSY, message=str(replaced.get("reason", "")), state="in progress",
                         since=parse_time(replaced.get("startedAt")))  # fmt: skip
        name = (status.get("nodeRef") or {}).get("name")
        if name:
            yield _node_elsewhere(name, machine) if self._has_own_api(machine) else self._node(name, spec)

    def _has_own_api(self, machine: Obj) -> bool:
        """Whether its Node lives in a workload cluster, which is not read here."""
        cluster = cluster_key_of(MACHINE, machine)
        return cluster is not None and bool(recorded_secret(self._view.get(CLUSTER, cluster)))

    def _node(self, name: str, spec: Mapping[str, Any]) -> Branch:
        node = self._view.get(NODE, Key("", name))
        if node is None and not self._view.complete(NODE):
            return Branch(f"Node/{name}")
        if node is None:
            return Branch(f"Node/{name}", Mood.BAD, state="missing", advice="The Node object is gone.")
        ready = find(conditions_of(node), "Ready") or {}
        have = str(((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion", ""))
        want = str((spec.get("versions") or {}).get("kubelet", ""))
        differs = have and want and have.lstrip("v") != want.lstrip("v")
        cordoned = ", cordoned" if (node.get("spec") or {}).get("unschedulable") else ""
        return Branch(
            f"Node/{name}",
            Mood.GOOD if ready.get("status") == "True" else Mood.BAD,
            state=("Ready" if ready.get("status") == "True" else "NotReady") + cordoned,
            reason="" if ready.get("status") == "True" else str(ready.get("reason", "")),
            since=parse_time(ready.get("lastTransitionTime")),
            message=f"kubelet {have}, asked for {want}" if differs else f"kubelet {have}",
        )

    def grouped(self, machines: Iterable[Obj]) -> list[Branch]:
        branches = [self._machine(m) for m in _by_name(machines)]
        if self._display.every_machine:
            return branches
        alike: dict[tuple[str, str, str], list[Branch]] = {}
        for branch in branches:
            alike.setdefault((branch.mood, branch.state, _described(branch).reason), []).append(branch)
        shown: list[Branch] = []
        for group in alike.values():
            shown.extend([_as_one(group)] if len(group) >= ALIKE else group)
        return shown


def _node_elsewhere(name: str, machine: Obj) -> Branch:
    """What the Machine itself says of its Node."""
    ready = find(conditions_of(machine), MachineCondition.NODE_READY) or {}
    is_ready = ready.get("status") == "True"
    return Branch(
        f"Node/{name}",
        mood_of_condition(ready),
        state="Ready" if is_ready else str(ready.get("status") or "Unknown"),
        reason="" if is_ready else str(ready.get("reason", "")),
        since=parse_time(ready.get("lastTransitionTime")),
        message="in its workload cluster",
    )


def _described(machine: Branch) -> Branch:
    """The line with the reason: the Machine's own if that is what is wrong, else its first bad condition."""
    if machine.mood is not Mood.BAD or wants_an_eye(machine.reason):
        return machine
    bad = (line for line in machine.children if line.mood is Mood.BAD and line.reason)
    return next(bad, machine)


def _as_one(group: list[Branch]) -> Branch:
    """What is left out below must not be all that says why. The one that has been so for the longest time speaks."""
    first = min(group, key=lambda branch: (branch.since is None, branch.since, branch.name))
    shown = _described(first)
    some = ", ".join(b.name.split("/", 1)[1] for b in (first, *(b for b in group if b is not first))[:2])
    others = len({_described(b).message for b in group}) - 1
    more = f", {counted(others, 'other message')}" if others else ""
    message = f"{shown.message} ({some}, …{more})" if shown.message else f"{some}, …"
    one = replace(first, name=f"{len(group)} Machines", message=message, children=())
    return replace(one, reason=shown.reason, advice=shown.advice)


def _counts(obj: Obj) -> str:
    """``2/3 ready``, and what more the kind counts if it differs."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if "expectedMachines" in status:
        return _health(status)
    if "replicas" not in spec:
        return str(status.get("phase") or "")
    want = spec.get("replicas")
    text = f"{status.get('readyReplicas') or 0}/{want} ready"
    if status.get("deletingReplicas"):
        text += f", {status['deletingReplicas']} going"
    if status.get("replicas", want) != want:
        text += f", {status['replicas']} there"
    if status.get("updatedReplicas", want) != want:
        text += f", {status['updatedReplicas']} updated"
    if status.get("availableReplicas", status.get("readyReplicas")) != status.get("readyReplicas"):
        text += f", {status['availableReplicas']} available"
    return text


def _health(status: Mapping[str, Any]) -> str:
    """``2/3 healthy``, and how many more may be replaced if not all are."""
    healthy, all_of_them = status.get("currentHealthy") or 0, status["expectedMachines"]
    text = f"{healthy}/{all_of_them} healthy"
    return text if healthy == all_of_them else f"{text}, {status.get('remediationsAllowed') or 0} may be replaced"


def _in_use(machine_set: Obj) -> bool:
    status = machine_set.get("status") or {}
    counts = (status.get("replicas"), status.get("deletingReplicas"))
    return bool((machine_set.get("spec") or {}).get("replicas") or any(counts))


def _revision(machine_set: Obj) -> tuple[int, str]:
    text = (machine_set["metadata"].get("annotations") or {}).get(names.REVISION_ANNOTATION, "")
    return (int(text) if text.isdigit() else 0, machine_set["metadata"]["name"])


def _by_name(objects: Iterable[Obj]) -> list[Obj]:
    return sorted(objects, key=key_of)
