"""Which machine of a cloudpool is which Node? The surest mark decides, and what is ambiguous is left open.

| mark | of the machine | of the Node |
|---|---|---|
| provider ID | id, ``metadata.providerID`` | ``spec.providerID`` |
| its last part | the last part of those | the last part of ``spec.providerID`` |
| name | id, ``metadata.nodeName`` | name, host name label, addresses of the types Hostname and DNS |
| address | private and public addresses | addresses of the types InternalIP and ExternalIP |
| external ID | id | ``spec.externalID``, which kubelets have not written since 1.11 |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from controllers.cloudpool.messages import PoolMachine
from controllers.kernel.refs import Obj, labels_of, spec_of

HOSTNAME_LABEL = "kubernetes.io/hostname"
_NAMES = ("Hostname", "InternalDNS", "ExternalDNS")
_ADDRESSES = ("InternalIP", "ExternalIP")
Marks = frozenset[str]


@dataclass(frozen=True, slots=True)
class Pairs:
    """``node_of``: id of a machine → its Node. ``ambiguous``: id → why it is not known which Node it is."""

    node_of: Mapping[str, Obj] = field(default_factory=dict)
    ambiguous: Mapping[str, str] = field(default_factory=dict)


def pair(machines: Iterable[PoolMachine], nodes: Iterable[Obj]) -> Pairs:
    """Each machine that is allocated with at most one Node, and the other way round.

    Machines that have ended take no part: their addresses may belong to others by now.
    """
    left = {machine.id: machine for machine in machines if machine.allocated}
    free = {str(node["metadata"]["name"]): node for node in nodes}
    paired: dict[str, Obj] = {}
    ambiguous: dict[str, str] = {}
    for tier in _TIERS:
        claims = _claims(tier, left, free)
        wanted_by: dict[str, list[str]] = {}
        for machine, names in claims.items():
            for name in names:
                wanted_by.setdefault(name, []).append(machine)
        for machine, names in claims.items():
            claimants = sorted({other for name in names for other in wanted_by[name]} - {machine})
            if len(names) == 1 and not claimants:
                paired[machine] = free[names[0]]
            else:
                ambiguous[machine] = _reason(tier, names, claimants)
            del left[machine]
        for name in wanted_by:
            del free[name]
    return Pairs(paired, ambiguous)


@dataclass(frozen=True, slots=True)
class _Tier:
    title: str
    of_machine: Callable[[PoolMachine], Marks]
    of_node: Callable[[Obj], Marks]


def _claims(tier: _Tier, machines: Mapping[str, PoolMachine], nodes: Mapping[str, Obj]) -> dict[str, list[str]]:
    """Machine → names of the Nodes that share one of its marks."""
    by_mark: dict[str, list[str]] = {}
    for name, node in nodes.items():
        for mark in tier.of_node(node):
            by_mark.setdefault(mark, []).append(name)
    found = {}
    for id_, machine in machines.items():
        names = {name for mark in tier.of_machine(machine) for name in by_mark.get(mark, ())}
        if names:
            found[id_] = sorted(names)
    return found


def _reason(tier: _Tier, names: list[str], claimants: list[str]) -> str:
    if len(names) > 1:
        return f"by its {tier.title} it may be any of the Nodes {', '.join(names)}"
    return f"by its {tier.title} Node {names[0]} may as well be machine {', '.join(claimants)}"


def _ids(machine: PoolMachine) -> Marks:
    return _sound((machine.id, _describe(machine, "providerID")))


def _last_parts(machine: PoolMachine) -> Marks:
    return _sound(_last(mark) for mark in _ids(machine))


def _names(machine: PoolMachine) -> Marks:
    return _sound((machine.id, _describe(machine, "nodeName")))


def _addresses(machine: PoolMachine) -> Marks:
    return _sound((*machine.private_ips, *machine.public_ips))


def _describe(machine: PoolMachine, name: str) -> str:
    metadata = machine.metadata
    value = metadata.get(name) if isinstance(metadata, Mapping) else None
    return value if isinstance(value, str) else ""


def _provider_id(node: Obj) -> Marks:
    return _sound((_spec(node, "providerID"),))


def _provider_part(node: Obj) -> Marks:
    return _sound((_last(_spec(node, "providerID")),))


def _node_names(node: Obj) -> Marks:
    labelled = str(labels_of(node).get(HOSTNAME_LABEL) or "")
    return _sound((str(node["metadata"]["name"]), labelled, *_of_types(node, _NAMES)))


def _node_addresses(node: Obj) -> Marks:
    return _sound(_of_types(node, _ADDRESSES))


def _external_id(node: Obj) -> Marks:
    return _sound((_spec(node, "externalID"),))


def _spec(node: Obj, name: str) -> str:
    return str(spec_of(node).get(name) or "")


def _of_types(node: Obj, types: tuple[str, ...]) -> Iterable[str]:
    addresses: Any = (node.get("status") or {}).get("addresses") or ()
    return [str(each.get("address") or "") for each in addresses if each.get("type") in types]


def _last(text: str) -> str:
    return text.rpartition("/")[2]


def _sound(marks: Iterable[str]) -> Marks:
    return frozenset(mark for mark in marks if mark)


_TIERS = (
    _Tier("provider ID", _ids, _provider_id),
    _Tier("provider ID's last part", _last_parts, _provider_part),
    _Tier("name", _names, _node_names),
    _Tier("address", _addresses, _node_addresses),
    _Tier("external ID", lambda machine: _sound((machine.id,)), _external_id),
)
