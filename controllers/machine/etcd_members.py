"""Would etcd take a new member now? It takes none while one that it has can't be reached (``etcdserver: unhealthy
cluster``), and a host that joins then fails after minutes. For Machines that a person declared: a ControlPlane looks at
its etcd itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from controllers.kernel.etcd import EtcdHost, EtcdMember, EtcdMembers, EtcdUnread, EtcdView
from controllers.kernel.ownership import controller_of
from controllers.kernel.refs import (
    CONTROL_PLANE,
    Key,
    Obj,
    is_deleting,
    key_of,
    mapping,
    objects,
    runs_control_plane,
    spec_of,
    status_of,
    uid_of,
)
from controllers.kernel.view import View, host_name_of
from controllers.machine.deletion_guards import peers_of


def in_the_way(machine: Obj, cluster: Key, view: View, etcd: EtcdView) -> str | None:
    """What has to be done before this Machine's host can join, "" for nothing; None while it is being found out.

    What can't be read is in nobody's way: then kubeadm finds it out.
    """
    peers = [peer for peer in peers_of(machine, view) if runs_control_plane(peer)]
    if spec_of(machine).get("providerID") or any(_is_of_control_plane(each) for each in (machine, *peers)):
        return ""
    hosts = _hosts(peers)
    if not hosts:
        return ""
    read = etcd.look(cluster, hosts)
    if isinstance(read, EtcdUnread):
        return None if read.finding_out else ""
    return _judged(read, peers)


def _judged(read: EtcdMembers, peers: list[Obj]) -> str:
    lame = [member for member in read.members if member.healthy is not True]
    if not lame:
        return ""
    first = lame[0]
    owner = next((peer for peer in peers if first.name and first.name in _names(peer)), None)
    wrong = first.why or ("it was added and never started" if not first.name else "it does not answer")
    text = f"etcd member {first.title} does not work ({wrong}), and etcd takes no new one until it does or is removed"
    if owner is not None and not is_deleting(owner):
        return f"{text}: mend the host of Machine {key_of(owner).name}, or delete that Machine"
    return f"{text}: {_cure(first, read)}"


def _cure(member: EtcdMember, read: EtcdMembers) -> str:
    voters = [each for each in read.members if not each.learner]
    healthy = sum(each.healthy is True for each in voters)
    if 2 * healthy <= len(voters):
        return f"only {healthy} of {len(voters)} voters are healthy, so etcd removes none: restore it from a snapshot"
    return f"if its host is lost, remove the member with ID {member.id} (docs/tasks/make-a-cluster.md, A host is lost)"


def _is_of_control_plane(machine: Obj) -> bool:
    owner = controller_of(machine)
    return owner is not None and owner.get("kind") == CONTROL_PLANE.name


def _hosts(peers: Iterable[Obj]) -> tuple[EtcdHost, ...]:
    """Node and address of each host that has joined; the internal address first."""
    found = []
    for peer in peers:
        status = status_of(peer)
        by_type = {each.get("type"): each.get("address") for each in reversed(objects(status.get("addresses")))}
        address = by_type.get("InternalIP") or by_type.get("ExternalIP")
        node = mapping(status.get("nodeRef")).get("name")
        if isinstance(node, str) and isinstance(address, str) and not is_deleting(peer):
            found.append(EtcdHost(node, address, uid_of(peer)))
    return tuple(sorted(found, key=lambda host: (host.name, host.address)))


def _names(machine: Obj) -> set[object]:
    """kubeadm calls a member as it calls the Node: by the host's name, which is the Machine's by default."""
    node = mapping(status_of(machine).get("nodeRef")).get("name")
    return {key_of(machine).name, host_name_of(machine), node}
