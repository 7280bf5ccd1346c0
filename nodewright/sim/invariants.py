"""What must hold after every step, and what must hold once all has settled. Each breach is one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from api.conditions import Reason
from api.names import (
    BOOTSTRAP_TOKEN_KEY,
    DELETE_MACHINE_ANNOTATION,
    MACHINE_CLASS_ANNOTATION,
    TEMPLATE_ANNOTATION,
    TOKEN_MACHINE_UID_LABEL,
)
from controllers.bootstrap.calls import data_of
from controllers.kernel.actions import Action, Create, Delete, Patch
from controllers.kernel.conditions import find, is_true
from controllers.kernel.refs import (
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    NODE,
    Key,
    Obj,
    annotations_of,
    is_deleting,
    key_of,
    labels_of,
    uid_of,
)
from controllers.kernel.remediation import is_selected_for_deletion
from controllers.kernel.template import rollout_part
from nodewright.apiserver.store.watching import Watch
from nodewright.apiserver.values import ApiError, WatchOptions
from nodewright.sim.bootstraps import bootstrap_secrets, tokens
from nodewright.sim.plane import Plane
from nodewright.sim.users import DEPLOYMENT
from providers.simulated.world import World


class Breach(AssertionError):
    """An invariant does not hold; the message is the sentence that says which."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a MachineDeployment's spec allows: at most ``most`` active Machines, at least ``least`` available ones."""

    most: int
    least: int


def bounds(deployment: Obj) -> Bounds:
    """Surge rounds up, unavailable down; both zero means one may be unavailable (as Deployments do)."""
    spec = deployment["spec"]
    replicas = int(spec.get("replicas", 1))
    rolling = (spec.get("strategy") or {}).get("rollingUpdate") or {}
    surge = _resolve(rolling.get("maxSurge", 1), replicas, up=True)
    unavailable = _resolve(rolling.get("maxUnavailable", 0), replicas, up=False)
    if not surge and not unavailable:
        unavailable = 1
    return Bounds(replicas + surge, max(0, replicas - unavailable))


def _resolve(value: int | str, replicas: int, up: bool) -> int:
    if isinstance(value, int):
        return value
    hundredths = int(value.removesuffix("%")) * replicas
    return -(-hundredths // 100) if up else hundredths // 100


def active(machines: Sequence[Obj]) -> list[Obj]:
    return [m for m in machines if not is_deleting(m)]


def available(machine: Obj) -> bool:
    return not is_deleting(machine) and is_true((machine.get("status") or {}).get("conditions"), "Ready")


class _MachineCounts:
    """How many Machines are active in the plane now; kept by a watch, since it is asked before each creation."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._watch: Watch | None = None
        self._active: set[Key] = set()

    def count(self) -> int:
        try:
            self._catch_up()
        except ApiError:  # so much has happened since that the plane has forgotten some of it
            self._watch = None
            self._catch_up()
        return len(self._active)

    def _catch_up(self) -> None:
        if self._watch is None:
            listed = self._plane.list_page(MACHINE)
            self._active = {key_of(machine) for machine in active(listed.items)}
            options = WatchOptions(resource_version=listed.resource_version)
            self._watch = self._plane.store.watch(self._plane.resource(MACHINE), "", options)
        while self._watch.pending:
            for event in self._watch.poll():
                if event.type in {"ADDED", "MODIFIED"} and not is_deleting(event.object):
                    self._active.add(key_of(event.object))
                elif event.type != "BOOKMARK":
                    self._active.discard(key_of(event.object))


@dataclass(frozen=True, slots=True)
class _Promise:
    """What a MachineSet knew when it got its size. ``there``: UIDs of the Machines that were counted on then.

    ``unmarked``: those that nobody had marked as the first to go; all of them, if a person had scaled, or if a broken
    Machine of an old set is hidden behind a marked one: the rollout gets on by one then, else it would stand for ever.
    """

    bounds: Bounds
    there: frozenset[str] = frozenset()
    unmarked: frozenset[str] = frozenset()


class Guard:
    """Looks at each write of the controllers before it is made; ``believed`` is the spec that they have seen.

    A MachineSet acts on the replicas that its MachineDeployment wrote last, so what was believed then is still in force
    for it when a person has edited the MachineDeployment since. Lives as long as the plane: a crash changes no promise.

    The promise: no size is decided, nobody is chosen and nothing is changed in place that leaves fewer than the minimum
    of the Machines that served when it was decided. What others do since is no breach, for the MachineSet can't take
    the decision back on its way down: a Machine that a person has deleted or edited since, or whose host broke
    since (seed 172 with health checks), counts as if it were still there; one that a person has marked since may go.
    What had happened when the size was decided is no excuse; but who marks Machines and then scales means those, as
    autoscalers do. Nor is what we took down since: deleted, or handed another template.
    """

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._in_force: dict[str, _Promise] = {}
        self._machine_counts = _MachineCounts(plane)
        self._ours: set[str] = set()
        self._chosen: dict[str, bool] = {}
        self._handed: dict[str, tuple[str, int]] = {}

    def expect(self, machine_set: str, bounds_: Bounds) -> None:
        """These are in force for ``machine_set``, though no MachineDeployment says so (it stands alone)."""
        self._in_force[machine_set] = _Promise(bounds_)

    def before(self, action: Action, seen: Iterable[Obj], believed: Bounds) -> None:
        """Raises Breach if ``action`` must not be done. ``seen`` is what the process's cache holds."""
        match action:
            case Create():
                self._before_create(action, believed)
            case Patch() if action.target.kind is MACHINE:
                self._before_update(action, seen, believed)
            case Delete():
                self._before_delete(action, seen, believed)

    def done(self, action: Action, seen: Iterable[Obj], believed: Bounds) -> None:
        """``action`` was carried out (whether or not the process has heard of that): what it promised is in force.

        A MachineDeployment tells a MachineSet its size or budget, a MachineSet records whom it chose.
        """
        match action:
            case Create() if action.kind is MACHINE_SET:
                self._in_force.setdefault(action.body["metadata"]["name"], _promise(seen, believed))
            case Patch() if action.target.kind is MACHINE_SET:
                if {"replicas", "inPlaceUpdate"} & (action.patch.get("spec") or {}).keys():
                    name = action.target.key.name
                    before = self._in_force.get(name)
                    scaled = before is not None and before.bounds != believed
                    self._in_force[name] = _promise(seen, believed, scaled or self._is_stuck(action.target.key, seen))
                self._remember_choice(action, seen)

    def _remember_choice(self, action: Patch, seen: Iterable[Obj]) -> None:
        ordinals = (action.patch.get("status") or {}).get("ordinals") or {}
        if "leaving" not in ordinals:
            return
        chosen = ordinals["leaving"] or ()
        for machine in seen:
            if key_of(machine).name in chosen:
                self._chosen.setdefault(uid_of(machine), available(machine))
            elif action.target.key.name in _owners(machine):
                self._chosen.pop(uid_of(machine), None)  # taken back: it is counted on again

    def _before_update(self, action: Patch, seen: Iterable[Obj], believed: Bounds) -> None:
        """A MachineSet hands a Machine a new template: that takes it down until its host has followed."""
        digest = ((action.patch.get("metadata") or {}).get("annotations") or {}).get(TEMPLATE_ANNOTATION)
        machine = next((m for m in seen if uid_of(m) == action.target.uid), None) if digest else None
        if not digest or machine is None:
            return
        if self._serves(machine):
            announced = self._promised(machine, believed)
            lost = self._lost_of(announced)
            left = sum(1 for m in seen if self._serves(m) or (is_deleting(m) and uid_of(m) in lost)) - 1
            least = min(believed.least, announced.bounds.least)
            if left < least:
                raise Breach(f"updating {action.target} in place leaves {left} available of at least {least}")
        changes = int("spec" in action.patch)  # else its spec says so already: a person was faster
        for name, promise in self._in_force.items():
            self._in_force[name] = replace(promise, there=promise.there - {uid_of(machine)})
        self._handed[uid_of(machine)] = (digest, machine["metadata"].get("generation", 1) + changes)

    def _serves(self, machine: Obj) -> bool:
        """Available, and its host is known to have followed the template that it was handed last."""
        updated = find((machine.get("status") or {}).get("conditions"), "UpToDate")
        if not available(machine) or updated is None or not _is_as_given(machine, updated):
            return False
        digest, generation = self._handed.get(uid_of(machine), ("", 0))
        handed = annotations_of(machine).get(TEMPLATE_ANNOTATION) == digest
        return not handed or int(updated.get("observedGeneration", 0)) >= generation

    def _before_create(self, action: Create, believed: Bounds) -> None:
        """A Machine must not be made beyond what a spec allows that may still be in force."""
        if action.kind is not MACHINE or self._plane.get(MACHINE, _key(action)) is not None:
            return
        most = max(believed.most, self._promised(action.body, believed).bounds.most)
        count = self._machine_counts.count() + 1
        if count > most:
            raise Breach(f"Machine {_key(action)} would be number {count} of at most {most}")

    def _before_delete(self, action: Delete, seen: Iterable[Obj], believed: Bounds) -> None:
        """An available Machine must not go if that breaks the minimum, as far as the process can know."""
        if action.target.kind is not MACHINE:
            return
        self._ours.add(action.target.uid)
        victim = next((m for m in seen if uid_of(m) == action.target.uid), None)
        if victim is None or not available(victim) or self._is_dead(victim):
            return
        if self._chosen.get(uid_of(victim)) is False:
            return  # chosen while it was not available: nobody has counted on it since
        promise = self._promised(victim, believed)
        if annotations_of(victim).get(DELETE_MACHINE_ANNOTATION) and uid_of(victim) in promise.unmarked:
            return
        lost = self._lost_of(promise)
        left = sum(1 for m in seen if available(m) or uid_of(m) in lost) - 1
        least = min(believed.least, promise.bounds.least)
        if left < least:
            raise Breach(f"deleting {action.target} leaves {left} available of at least {least}")

    def _is_dead(self, machine: Obj) -> bool:
        """A health check, which sees its Node, has selected it for deletion; its own status does not say so yet."""
        status = machine.get("status") or {}
        name = (status.get("nodeRef") or {}).get("name")
        node = self._plane.get(NODE, Key("", name)) if name else None
        ready = find((node.get("status") or {}).get("conditions"), "Ready") if node is not None else None
        silent = ready is not None and ready["status"] == "Unknown"
        return silent and is_selected_for_deletion(status)

    def _lost_of(self, promise: _Promise) -> frozenset[str]:
        """Counted on when the promise was made; those that serve no more a person or their host's failure took down."""
        return promise.there.difference(self._ours)

    def _is_stuck(self, key: Key, seen: Iterable[Obj]) -> bool:
        """It is an old set, and one of its Machines has a Node or had one, does not serve, and nobody marked it."""
        machine_set, deployment = self._plane.get(MACHINE_SET, key), self._plane.get(MACHINE_DEPLOYMENT, DEPLOYMENT)
        if machine_set is None or deployment is None:
            return False
        if rollout_part(machine_set["spec"]["template"]) == rollout_part(deployment["spec"]["template"]):
            return False
        silent = (m for m in seen if key.name in _owners(m) and not is_deleting(m) and not available(m))
        return any(not annotations_of(m).get(DELETE_MACHINE_ANNOTATION) for m in silent)

    def _promised(self, machine: Obj, believed: Bounds) -> _Promise:
        return next((self._in_force[name] for name in _owners(machine) if name in self._in_force), _Promise(believed))


def _promise(seen: Iterable[Obj], believed: Bounds, marks_count: bool = False) -> _Promise:
    there = frozenset(uid_of(machine) for machine in seen if available(machine))
    marked = (uid_of(m) for m in seen if annotations_of(m).get(DELETE_MACHINE_ANNOTATION) and not marks_count)
    return _Promise(believed, there, frozenset(map(uid_of, seen)).difference(marked))


def _owners(machine: Obj) -> list[str]:
    return [owner["name"] for owner in machine["metadata"].get("ownerReferences") or ()]


def _key(action: Create) -> Key:
    return Key(action.body["metadata"].get("namespace", ""), action.body["metadata"]["name"])


def always(plane: Plane, world: World) -> Iterator[str]:
    """True after every step, whatever happened."""
    hosts: dict[str, str] = {}
    for host in world.hosts():
        uid = host.machine_uid
        if uid in hosts:
            yield f"Machine {uid} has two hosts: {hosts[uid]} and {host.id}"
        hosts[uid] = host.id
    named: dict[str, str] = {}
    machines = plane.list(MACHINE)
    yield from _tokens(plane, frozenset(map(uid_of, machines)))
    for machine in machines:
        node = ((machine.get("status") or {}).get("nodeRef") or {}).get("name")
        if node and node in named:
            yield f"Node {node} is claimed by {named[node]} and {key_of(machine)}"
        if node:
            named[node] = str(key_of(machine))


def _tokens(plane: Plane, machines: frozenset[str]) -> Iterator[str]:
    """No token outlives its Machine, and no two hosts share one; of all Machines, those that are going included."""
    seen: dict[str, str] = {}
    for token in tokens(plane):
        name = key_of(token).name
        uid = labels_of(token).get(TOKEN_MACHINE_UID_LABEL, "")
        if uid not in machines:
            yield f"{name} has outlived its Machine {uid}"
        if uid in seen:
            yield f"Machine {uid} has two tokens: {seen[uid]} and {name}"
        seen[uid] = name
    given: dict[str, str] = {}
    for secret in bootstrap_secrets(plane):
        text = data_of(secret).get(BOOTSTRAP_TOKEN_KEY, "")
        if text in given:
            yield f"{key_of(secret)} and {given[text]} hold the same token"
        given[text] = str(key_of(secret))


def settled(plane: Plane, world: World) -> Iterator[str]:
    """True once nothing has been left to do for long enough: desired and current world match."""
    machines = {uid_of(m): m for m in plane.list(MACHINE)}
    deployment = plane.get(MACHINE_DEPLOYMENT, DEPLOYMENT)
    wanted = int(deployment["spec"].get("replicas", 1)) if deployment else 0
    yield from _counts(plane, machines, wanted)
    hosts = {host.machine_uid: host for host in world.hosts()}
    for uid in hosts.keys() - machines.keys():
        yield f"host {hosts[uid].name} is left without a Machine"
    for uid, machine in machines.items():
        host = hosts.get(uid)
        name = key_of(machine)
        if host is None:
            yield f"Machine {name} has no host (phase {(machine.get('status') or {}).get('phase')})"
            continue
        if host.kubelet_version != machine["spec"]["versions"]["kubelet"]:
            yield f"Machine {name} asks for {machine['spec']['versions']['kubelet']}, host has {host.kubelet_version}"
        if machine["spec"].get("providerID") != host.provider_id:
            yield f"Machine {name} has providerID {machine['spec'].get('providerID')}, its host {host.provider_id}"
        if not available(machine):
            yield f"Machine {name} is not Ready: {(machine.get('status') or {}).get('conditions')}"
        yield from _node(plane, machine, host.provider_id)
    for secret in (*tokens(plane), *bootstrap_secrets(plane)):
        yield f"Secret {key_of(secret)} is left though all hosts have joined"
    provider_ids = {host.provider_id for host in hosts.values()}
    for node in plane.list(NODE):
        if node["spec"].get("providerID") not in provider_ids:
            yield f"Node {key_of(node)} is left without a host"


def _counts(plane: Plane, machines: Mapping[str, Obj], wanted: int) -> Iterator[str]:
    if len(machines) != wanted:
        yield f"{len(machines)} Machines exist, {wanted} are wanted"
    for machine_set in plane.list(MACHINE_SET):
        status = machine_set.get("status") or {}
        want = int(machine_set["spec"].get("replicas", 1))
        for count in ("replicas", "readyReplicas", "availableReplicas"):
            if int(status.get(count, 0)) != want:
                yield f"MachineSet {key_of(machine_set)} has {count} {status.get(count, 0)}, wants {want}"


def _node(plane: Plane, machine: Obj, provider_id: str) -> Iterator[str]:
    reference = (machine.get("status") or {}).get("nodeRef") or {}
    node = plane.get(NODE, Key("", reference.get("name", "")))
    if node is None:
        yield f"Machine {key_of(machine)} is linked to Node {reference.get('name')!r}, which is gone"
        return
    if node["spec"].get("providerID") != provider_id:
        yield f"Machine {key_of(machine)} is linked to a Node of another host"
    wanted = ((machine["spec"].get("metadata") or {}).get("labels")) or {}
    labels = node["metadata"].get("labels") or {}
    for key, value in wanted.items():
        if labels.get(key) != value:
            yield f"Node {key_of(node)} has {key}={labels.get(key)}, Machine {key_of(machine)} asks for {value}"


def _is_as_given(machine: Obj, updated: Mapping[str, Any]) -> bool:
    """Its host is up to date, or waits for its set to hand it an edited MachineClass, which disturbs nobody yet."""
    given = annotations_of(machine).get(MACHINE_CLASS_ANNOTATION)
    if given != ((machine.get("status") or {}).get("machineClassDigest") or given):
        return False
    return bool(updated["status"] == "True" or updated["reason"] == Reason.WAITING_FOR_ROLLOUT)
