"""What must hold after every step, and what must hold once all has settled. Each breach is one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.conditions import Reason
from api.names import DELETE_MACHINE_ANNOTATION, MACHINE_CLASS_ANNOTATION, TEMPLATE_ANNOTATION
from controllers.kernel.actions import Create, Delete, Patch
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
    uid_of,
)
from nodewright.controlplane.store.watching import Watch
from nodewright.controlplane.values import ApiError, WatchOptions
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


class _Census:
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


class Guard:
    """Looks at each write of the controllers before it is made; ``believed`` is the spec that they have seen.

    A MachineSet acts on the replicas that its MachineDeployment wrote last, so what was believed then is still in force
    for it when a person has edited the MachineDeployment since. Lives as long as the plane: a crash changes no promise.
    """

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._in_force: dict[str, Bounds] = {}
        self._census = _Census(plane)
        self._ours: set[str] = set()
        self._chosen: dict[str, bool] = {}
        self._handed: dict[str, tuple[str, int]] = {}

    def expect(self, machine_set: str, bounds_: Bounds) -> None:
        """These are in force for ``machine_set``, though no MachineDeployment says so (it stands alone)."""
        self._in_force[machine_set] = bounds_

    def before_patch(self, action: Patch, seen: Sequence[Obj], believed: Bounds) -> None:
        """A MachineDeployment tells a MachineSet its size or budget, or a MachineSet records whom it chose.

        Or it hands a Machine a new template: that takes it down as a delete would, until its host has followed.
        """
        if action.target.kind is MACHINE:
            self._before_update(action, seen, believed)
        if action.target.kind is not MACHINE_SET:
            return
        if {"replicas", "inPlaceUpdate"} & (action.patch.get("spec") or {}).keys():
            self._in_force[action.target.key.name] = believed
        chosen = ((action.patch.get("status") or {}).get("ordinals") or {}).get("leaving") or ()
        for machine in seen:
            if key_of(machine).name in chosen:
                self._chosen.setdefault(uid_of(machine), available(machine))

    def _before_update(self, action: Patch, seen: Sequence[Obj], believed: Bounds) -> None:
        notes = (action.patch.get("metadata") or {}).get("annotations") or {}
        machine = next((m for m in seen if uid_of(m) == action.target.uid), None)
        digest = notes.get(TEMPLATE_ANNOTATION)
        if not digest or machine is None:
            return
        if self._serves(machine):
            left = sum(1 for m in seen if self._serves(m) or self._deleted_by_somebody(m)) - 1
            least = min(believed.least, self._promised(machine, believed).least)
            if left < least:
                raise Breach(f"updating {action.target} in place leaves {left} available of at least {least}")
        changes = int("spec" in action.patch)  # else its spec says so already: a person was faster
        self._handed[uid_of(machine)] = (digest, machine["metadata"].get("generation", 1) + changes)

    def _serves(self, machine: Obj) -> bool:
        """Available, and its host is known to have followed the template that it was handed last."""
        updated = find((machine.get("status") or {}).get("conditions"), "UpToDate")
        if not available(machine) or updated is None or not _is_as_given(machine, updated):
            return False
        digest, generation = self._handed.get(uid_of(machine), ("", 0))
        handed = annotations_of(machine).get(TEMPLATE_ANNOTATION) == digest
        return not handed or int(updated.get("observedGeneration", 0)) >= generation

    def before_create(self, action: Create, believed: Bounds) -> None:
        """A Machine must not be made beyond what a spec allows that may still be in force."""
        if action.kind is MACHINE_SET:
            self._in_force[action.body["metadata"]["name"]] = believed
        if action.kind is not MACHINE or self._plane.get(MACHINE, _key(action)) is not None:
            return
        present = self._plane.get(MACHINE_DEPLOYMENT, DEPLOYMENT)
        most = max(believed.most, self._promised(action.body, believed).most, bounds(present).most if present else 0)
        count = self._census.count() + 1
        if count > most:
            raise Breach(f"Machine {_key(action)} would be number {count} of at most {most}")

    def before_delete(self, action: Delete, seen: list[Obj], believed: Bounds) -> None:
        """An available Machine must not go if that breaks the minimum, as far as the process can know.

        ``seen`` is what its cache holds. What a person does to single Machines is no breach: one that they marked goes
        first, and those that they deleted or edited meanwhile were there when the decision was made.
        """
        if action.target.kind is not MACHINE:
            return
        self._ours.add(action.target.uid)
        victim = next((m for m in seen if uid_of(m) == action.target.uid), None)
        if victim is None or not available(victim) or annotations_of(victim).get(DELETE_MACHINE_ANNOTATION):
            return
        if self._chosen.get(uid_of(victim)) is False:
            return  # chosen while it was not available: nobody has counted on it since
        if self._is_dead(victim):
            return  # its status has not told yet what its Node says: nobody's pods run there
        left = sum(1 for m in seen if available(m) or _edited(m) or self._deleted_by_somebody(m)) - 1
        least = min(believed.least, self._promised(victim, believed).least)
        if left < least:
            raise Breach(f"deleting {action.target} leaves {left} available of at least {least}")

    def _is_dead(self, machine: Obj) -> bool:
        name = ((machine.get("status") or {}).get("nodeRef") or {}).get("name")
        node = self._plane.get(NODE, Key("", name)) if name else None
        ready = find((node.get("status") or {}).get("conditions"), "Ready") if node is not None else None
        return ready is not None and ready["status"] == "Unknown"

    def _deleted_by_somebody(self, machine: Obj) -> bool:
        return is_deleting(machine) and uid_of(machine) not in self._ours

    def _promised(self, machine: Obj, believed: Bounds) -> Bounds:
        owners = machine["metadata"].get("ownerReferences") or ()
        return next((self._in_force[o["name"]] for o in owners if o["name"] in self._in_force), believed)


def _edited(machine: Obj) -> bool:
    """Taken down by a person's edit of this very Machine: no budget of a set covers that."""
    updated = find((machine.get("status") or {}).get("conditions"), "UpToDate")
    return not is_deleting(machine) and updated is not None and updated["status"] == "False"


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
    for machine in plane.list(MACHINE):
        node = ((machine.get("status") or {}).get("nodeRef") or {}).get("name")
        if node and node in named:
            yield f"Node {node} is claimed by {named[node]} and {key_of(machine)}"
        if node:
            named[node] = str(key_of(machine))


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
