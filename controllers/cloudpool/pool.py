"""A MachineDeployment or MachineSet seen as a cloudpool: its Machines, their states, and how many are wanted.

| of the Machine | state |
|---|---|
| being deleted | TERMINATING |
| failed for good, and no Node | REJECTED |
| has a Node | RUNNING |
| has a host (``spec.providerID``) | PENDING |
| none of these | REQUESTED |
| not made yet, though ``spec.replicas`` asks for it | REQUESTED, under the name ``<pool>-requested-<n>`` |

``spec.replicas`` is the desired size, and one more for each machine that a client has set aside (inactive, and not to
be evicted): it runs on, and another one works in its place. For which machines it is more stands on the pool, written
with it in one patch: what a client asks of a machine, and what was done about it, are never mixed up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api import names
from api.conditions import MachineCondition
from api.providerconfig import ProviderConfigError, find
from controllers.cloudpool.messages import MachineState, Membership, PoolMachine, PoolSize, ServiceState, stamp
from controllers.kernel import machine_facts
from controllers.kernel.conditions import find as condition_of
from controllers.kernel.conditions import parse_time
from controllers.kernel.machine_facts import MachineFacts, read_membership
from controllers.kernel.ownership import controlled
from controllers.kernel.refs import (
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    Key,
    Kind,
    Obj,
    Ref,
    annotations_of,
    key_of,
    ref_of,
    resource_version_of,
    spec_of,
    uid_of,
)
from controllers.kernel.view import NAMESPACE, OWNER, View
from controllers.scaling.node_group import UNBOUNDED, NodeGroup, ScaledGroup
from controllers.scaling.resize import Scaler, is_marked_by

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (MACHINE_DEPLOYMENT, MACHINE_SET)}
READS: tuple[Kind, ...] = (MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE)
MARK = Scaler.CLOUDPOOL
MOST_PLACEHOLDERS = 5000
_UNKNOWN = "N/A"


@dataclass(frozen=True, slots=True)
class Member:
    """A Machine of the pool, both ways. ``owner``: its MachineSet."""

    facts: MachineFacts
    machine: PoolMachine
    owner: Obj

    @property
    def marked(self) -> bool:
        """To go first, by us."""
        return is_marked_by(self.facts, MARK)

    @property
    def given_up(self) -> bool:
        """To be deleted, and another one made."""
        membership = self.machine.membership
        return self.removable and not membership.active and membership.evictable

    @property
    def removable(self) -> bool:
        """Allocated, or failed for good: what a client may still take away."""
        return self.machine.allocated or self.machine.state is MachineState.REJECTED


@dataclass(frozen=True, slots=True)
class Pool:
    """``detached``: Machines that are no longer in the pool, which is still to be one less for each.

    ``sets``: the MachineSets that make its Machines; the pool itself if it is one.
    """

    kind: Kind
    body: Obj
    members: tuple[Member, ...]
    detached: tuple[Obj, ...] = ()
    sets: tuple[Obj, ...] = ()

    @property
    def ref(self) -> Ref:
        return ref_of(self.kind, self.body)

    @property
    def name(self) -> str:
        return self.ref.key.name

    @property
    def version(self) -> str:
        return resource_version_of(self.body)

    @property
    def scaled(self) -> ScaledGroup:
        """As scalers see it. A client of a cloudpool is not held to the bounds that autoscalers keep."""
        group = NodeGroup(self.ref, UNBOUNDED, self.replicas, self.version)
        return ScaledGroup(group, tuple(member.facts for member in self.members), self.rolling)

    @property
    def replicas(self) -> int:
        """One that is left out means one, as in Kubernetes."""
        return _replicas(self.body)

    @property
    def policy(self) -> str:
        return str(spec_of(self.body).get("deletePolicy") or "")

    @property
    def staying(self) -> tuple[Member, ...]:
        """Those that are not being deleted."""
        return tuple(member for member in self.members if not member.facts.deleting)

    @property
    def set_aside(self) -> frozenset[str]:
        """Machines, by name, that are to have another one in their place."""
        return frozenset(member.facts.key.name for member in self.staying if is_set_aside(member.machine))

    @property
    def worked_for(self) -> frozenset[str]:
        """Machines, by name, for which ``replicas`` is one more each."""
        listed = annotations_of(self.body).get(names.CLOUDPOOL_SET_ASIDE_ANNOTATION, "")
        return frozenset(name for name in listed.split(",") if name)

    @property
    def desired(self) -> int:
        return max(0, self.replicas - len(self.worked_for))

    @property
    def barred_for(self) -> str:
        """Name of the Machine that is being attached: meanwhile none are made; "" if that is not so."""
        bar = annotations_of(self.body).get(names.DISABLE_CREATE_ANNOTATION, "")
        mark, slash, name = bar.partition("/")
        return name if slash and mark == MARK else ""

    @property
    def surplus(self) -> int:
        """Machines that are to go and that nobody deletes yet."""
        return max(0, len(self.staying) - self.replicas)

    @property
    def takes_the_marked(self) -> bool:
        """All that we marked are to go by the size as it is. In a rollout nobody can tell: others go then as well."""
        one_set = len({uid_of(member.owner) for member in self.staying}) <= 1
        return one_set and sum(member.marked for member in self.staying) <= self.surplus

    @property
    def rolling(self) -> bool:
        """Machines of several revisions are there: the rollout says which of them go."""
        return len({uid_of(member.owner) for member in self.members}) > 1

    @property
    def applied(self) -> bool:
        """The controllers have seen the object as it is, a changed template included."""
        return self.kind != MACHINE_DEPLOYMENT or _observed(self.body)

    @property
    def carried_out(self) -> bool:
        """The MachineSets know the size: what was detached before it is missed by none of them any more."""
        wanted = sum(_replicas(each) for each in self.sets)
        return self.applied and all(map(_observed, self.sets)) and (wanted <= self.replicas or self.rolling)

    @property
    def missing(self) -> int:
        """Machines that are still to be made."""
        return max(0, self.replicas - len(self.staying))

    @property
    def machines(self) -> tuple[PoolMachine, ...]:
        """Those that are still to be made under names that nobody has yet, the first thousands of them."""
        shown = range(min(self.missing, MOST_PLACEHOLDERS))
        return (*(member.machine for member in self.members), *(_placeholder(self.name, n) for n in shown))

    @property
    def size(self) -> PoolSize:
        machines = [member.machine for member in self.members]
        allocated, active = sum(m.allocated for m in machines), sum(m.active for m in machines)
        return PoolSize(self.desired, allocated + self.missing, active + self.missing)

    def member(self, id_: str) -> Member | None:
        """By name, by provider ID, or by the last part of that."""
        for known in (_name, _provider_id, _last_part):
            found = [member for member in self.members if id_ and known(member) == id_]
            if len(found) == 1:
                return found[0]
        return None

    def has(self, name: str) -> bool:
        return any(member.facts.key.name == name for member in self.members)

    def is_placeholder(self, id_: str) -> bool:
        return any(machine.id == id_ for machine in self.machines) and self.member(id_) is None


def _replicas(body: Obj) -> int:
    wanted = spec_of(body).get("replicas")
    return wanted if isinstance(wanted, int) else 1


def _observed(body: Obj) -> bool:
    """True as well if no controller has written a status yet."""
    generation = body["metadata"].get("generation")
    return generation is None or (body.get("status") or {}).get("observedGeneration") in (None, generation)


def is_set_aside(machine: PoolMachine) -> bool:
    return not machine.membership.active and not machine.membership.evictable


def detachment_of(machine: Obj, pool_uid: str) -> str:
    """Which detachment from that pool is still to be accounted for; "" if none is."""
    uid, _, number = annotations_of(machine).get(names.CLOUDPOOL_DETACHED_FROM_ANNOTATION, "").partition("/")
    return f"{machine['metadata']['name']}/{number}" if number and uid == pool_uid else ""


def observe(kind: Kind, key: Key, view: View) -> Pool | None:
    """None if the object is not there."""
    body = view.get(kind, key)
    if body is None:
        return None
    sets: Sequence[Obj] = [body] if kind == MACHINE_SET else controlled(body, MACHINE_SET, view)
    members = [_member(machine, owner) for owner in sets for machine in controlled(owner, MACHINE, view)]
    unmatched = (one for one in view.indexed(MACHINE, OWNER, "") if key_of(one).namespace == key.namespace)
    detached = tuple(machine for machine in unmatched if detachment_of(machine, uid_of(body)))
    return Pool(kind, body, tuple(sorted(members, key=lambda member: member.facts.key)), detached, tuple(sets))


def unmatched_machine(id_: str, namespace: str, view: View) -> Obj | None:
    """A Machine of the namespace by its name or provider ID, whoever owns it."""
    for machine in view.indexed(MACHINE, NAMESPACE, namespace):
        provider_id = str(spec_of(machine).get("providerID") or "")
        if id_ and id_ in (machine["metadata"]["name"], provider_id, provider_id.rpartition("/")[2]):
            return machine
    return None


def membership_of(machine: Obj) -> Membership:
    """What a client said; nothing: active and evictable. What can't be read protects."""
    membership = read_membership(machine)
    return Membership(*membership) if membership is not None else Membership()


def _member(machine: Obj, owner: Obj) -> Member:
    facts = machine_facts.read(machine)
    state = _state(facts, machine)
    public, private = _addresses(machine)
    return Member(
        facts,
        PoolMachine(
            facts.key.name,
            state,
            membership_of(machine),
            _service_state(machine),
            public,
            private,
            _launched(machine, facts) if state in {MachineState.PENDING, MachineState.RUNNING} else "",
            stamp(facts.created),
            _metadata(machine, facts),
            _cloud(machine),
        ),
        owner,
    )


def _state(facts: MachineFacts, machine: Obj) -> MachineState:
    if facts.deleting:
        return MachineState.TERMINATING
    if facts.node_name:
        return MachineState.RUNNING
    if facts.failed:
        return MachineState.REJECTED
    return MachineState.PENDING if spec_of(machine).get("providerID") else MachineState.REQUESTED


def _service_state(machine: Obj) -> ServiceState:
    """As a client wrote it down last."""
    written = annotations_of(machine).get(names.CLOUDPOOL_SERVICE_STATE_ANNOTATION)
    return ServiceState(written) if written in set(ServiceState) else ServiceState.UNKNOWN


def _addresses(machine: Obj) -> tuple[tuple[str, ...], tuple[str, ...]]:
    found: dict[str, list[str]] = {"ExternalIP": [], "InternalIP": []}
    addresses = (machine.get("status") or {}).get("addresses")
    for each in addresses if isinstance(addresses, list) else ():
        if isinstance(each, Mapping) and each.get("type") in found and isinstance(each.get("address"), str):
            found[str(each["type"])].append(each["address"])
    return tuple(found["ExternalIP"]), tuple(found["InternalIP"])


def _launched(machine: Obj, facts: MachineFacts) -> str:
    launched_at = condition_of((machine.get("status") or {}).get("conditions"), MachineCondition.INFRASTRUCTURE_READY)
    moment = (
        parse_time(launched_at.get("lastTransitionTime"))
        if launched_at and launched_at.get("status") == "True"
        else None
    )
    return stamp(moment or facts.created)


def _metadata(machine: Obj, facts: MachineFacts) -> dict[str, str]:
    """What says which Node it is, for a proxy in front of this pool."""
    provider_id = str(spec_of(machine).get("providerID") or "")
    found = {"namespace": facts.key.namespace, "name": facts.key.name, "uid": facts.uid}
    return {**found, "providerID": provider_id, "nodeName": facts.node_name}


def _cloud(machine: Obj) -> tuple[str, str, str]:
    """Provider, region and size as far as the Machine tells."""
    status = machine.get("status") or {}
    try:
        config, _ = find(machine)
    except ProviderConfigError:
        config = None
    value = config.value if config is not None and isinstance(config.value, Mapping) else {}
    size = next((value[key] for key in ("size", "flavor", "instanceType") if isinstance(value.get(key), str)), "")
    provider = str(value.get("apiVersion") or "").partition("/")[0]
    region = status.get("failureDomain")
    return provider or _UNKNOWN, region if isinstance(region, str) and region else _UNKNOWN, size or _UNKNOWN


def _placeholder(pool: str, number: int) -> PoolMachine:
    cloud = (_UNKNOWN, _UNKNOWN, _UNKNOWN)
    return PoolMachine(f"{pool}-requested-{number}", MachineState.REQUESTED, cloud=cloud)


def _name(member: Member) -> str:
    return member.facts.key.name


def _provider_id(member: Member) -> str:
    return _metadata_text(member, "providerID")


def _last_part(member: Member) -> str:
    return _provider_id(member).rpartition("/")[2]


def _metadata_text(member: Member, name: str) -> str:
    metadata: Any = member.machine.metadata
    return str(metadata.get(name) or "")
