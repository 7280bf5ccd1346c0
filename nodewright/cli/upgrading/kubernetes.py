"""Which versions of Kubernetes may come next for a Cluster, and what waits for what. Pure.

The rules are Kubernetes's version skew policy and the table of known hazards, by the functions that the controllers
ask before they touch anything.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from api.names import InPlace
from controllers.bootstrap.hazards import KUBEADM_KNOWN, Context, hazards
from controllers.bootstrap.join import OLDEST_SKEW
from controllers.controlplane.together import TOGETHER
from controllers.controlplane.waiting import kubelet_of_template
from controllers.kernel.conditions import some_of
from controllers.kernel.ownership import cluster_name_of, controller_uid
from controllers.kernel.refs import (
    CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    Key,
    Kind,
    Obj,
    is_deleting,
    key_of,
    mapping,
    runs_control_plane,
    spec_of,
    status_of,
    uid_of,
)
from controllers.kernel.version import Version, dotted, parse

MEMBERS = (CONTROL_PLANE, MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE)
_MOST_NAMES = 5
_FOLLOWS: Final = "its ControlPlane hands it the version"
_HOW: Final = {
    InPlace.NEVER: "its Machines are replaced by new ones",
    InPlace.PREFER: "its Machines are changed in place where their provider can, else replaced",
    InPlace.REQUIRE: "its Machines are changed in place; where their provider can't, it stops",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """Of a provider, for one config: whether its hosts get another version in place; None: that shows with the host."""

    in_place: bool | None = None
    why: str = ""

    @property
    def text(self) -> str:
        if self.in_place is None:
            return f"unknown: {self.why}" if self.why else "says only when it is asked to change the host"
        return "changes hosts in place" if self.in_place else f"makes other hosts: {self.why}"


AskProvider = Callable[[Mapping[str, Any], str], Answer]
"""Asks for a Machine's spec in a namespace."""


def _nobody(_spec: Mapping[str, Any], _namespace: str) -> Answer:
    return Answer()


@dataclass(frozen=True, slots=True)
class Part:
    """A ControlPlane, a set or a Machine that nothing else here controls. ``asked``: its version, None without one.

    ``runs``: versions that kubelets of its Machines have reported, the oldest first. ``provider``: of its Machines.
    """

    kind: Kind
    key: Key
    plane: bool
    asked: Version | None
    runs: tuple[Version, ...]
    how: str
    provider: Answer = Answer()

    @property
    def title(self) -> str:
        return f"{self.kind.name}/{self.key.name}"

    def patch(self, version: str) -> dict[str, Any]:
        """Merge patch that asks for ``version``, such as 1.36.3."""
        if self.kind == CONTROL_PLANE:
            return {"spec": {"version": version}}
        versions = {"kubelet": version, **({"controlPlane": version} if self.plane else {})}
        machine = {"spec": {"versions": versions}}
        return machine if self.kind == MACHINE else {"spec": {"template": machine}}

    def command(self, version: str) -> str:
        """To be typed as it is."""
        patch = json.dumps(self.patch(version), separators=(",", ":"))
        what = f"{self.kind.plural}.{self.kind.group}/{self.key.name}"
        words = ["kubectl", "-n", self.key.namespace, "patch", what, "--type=merge", "-p", patch]
        return " ".join(map(shlex.quote, words))


@dataclass(frozen=True, slots=True)
class Next:
    """``version``: exact, or a minor version of which any patch will do. ``refused``: why not, () if it may come."""

    version: str
    refused: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cluster:
    """``planes`` and ``workers`` in the order in which they are upgraded."""

    key: Key
    planes: tuple[Part, ...]
    workers: tuple[Part, ...]

    @property
    def oldest_plane(self) -> Version | None:
        """As far as it is known: what runs counts, and what is asked for where nothing has reported."""
        return min(_versions(self.planes), default=None)

    @property
    def newest_plane(self) -> Version | None:
        return max(_versions(self.planes), default=None)


def cluster_of(key: Key, world: Mapping[Kind, Iterable[Obj]], ask: AskProvider = _nobody) -> Cluster:
    """``world``: objects of MEMBERS, of any Clusters."""
    members = [
        (kind, obj)
        for kind in MEMBERS
        for obj in world.get(kind, ())
        if cluster_name_of(obj) == key.name and key_of(obj).namespace == key.namespace and not is_deleting(obj)
    ]
    owners = {uid_of(obj) for _, obj in members}
    machines = [obj for kind, obj in members if kind == MACHINE]
    together = any(kind == CONTROL_PLANE and spec_of(obj).get("upgrade") == TOGETHER for kind, obj in members)
    heads = [(kind, obj) for kind, obj in members if controller_uid(obj) not in owners]
    parts = [
        replace(_part(kind, obj, machines, members), provider=ask(_machine_spec(kind, obj), key.namespace))
        for kind, obj in heads
    ]
    if together:
        parts = [replace(p, how=f"{_FOLLOWS}; {p.how}") if p.kind == MACHINE_DEPLOYMENT else p for p in parts]
    planes = tuple(part for part in parts if part.plane)
    return Cluster(key, planes, tuple(part for part in parts if not part.plane))


def next_versions(cluster: Cluster) -> tuple[Next, ...]:
    """The next patch and the next minor version of its control plane, or of its workers where it has none here."""
    base = cluster.oldest_plane or min(_versions(cluster.workers), default=None)
    if base is None:
        return ()
    minor = (base[0], base[1] + 1, 0)
    patch = Next(f"{base[0]}.{base[1]}, any patch after {base[2]}")
    found = judged(cluster, dotted(minor))
    return patch, Next(f"{minor[0]}.{minor[1]}", found.refused, found.warned)


def judged(cluster: Cluster, version: str) -> Next:
    """Whether the control plane may go to ``version``; where it is elsewhere, the workers."""
    wanted = parse(version)
    if wanted is None:
        return Next(version, (f"{version!r} is no version like 1.36.3",))
    refused = [*_unknown(wanted), *_way(cluster, wanted), *_left_behind(cluster, wanted)]
    base = cluster.oldest_plane or min(_versions(cluster.workers), default=None)
    context = Context(control_plane=bool(cluster.planes), kubelet_client_binding=True)
    found = hazards(dotted(base) if base else "", dotted(wanted), context)
    known = {"control-plane-skips-a-minor", "control-plane-downgrade"}
    warned = [each.message for each in found if each.kind == "warn" or each.id == "etcd-revived-members"]
    refused += [
        each.message for each in found if each.kind == "refuse" and each.id not in known | {"etcd-revived-members"}
    ]
    return Next(version, tuple(refused), tuple(warned))


def waits(cluster: Cluster, part: Part, version: str) -> str:
    """What has to come before ``part`` may have ``version``; "" if nothing has."""
    oldest, wanted = cluster.oldest_plane, parse(version)
    if part.plane or wanted is None:
        return ""
    if oldest is not None and wanted[:2] > oldest[:2]:
        return f"waits for control plane {wanted[0]}.{wanted[1]}; its oldest Machine is of {dotted(oldest)}"
    return ""


def lagging(cluster: Cluster) -> tuple[Part, ...]:
    """Workers that ask for an older version than the oldest of the control plane."""
    oldest = cluster.oldest_plane
    return tuple(p for p in cluster.workers if oldest is not None and p.asked is not None and p.asked < oldest)


def _part(kind: Kind, obj: Obj, machines: Iterable[Obj], members: Iterable[tuple[Kind, Obj]]) -> Part:
    own = {uid_of(obj)}
    own |= {uid_of(each) for other, each in members if other == MACHINE_SET and controller_uid(each) in own}
    ours = [each for each in machines if uid_of(each) in own or controller_uid(each) in own]
    runs = sorted({version for each in ours if (version := parse(_kubelet(status_of(each)))) is not None})
    plane = kind == CONTROL_PLANE or runs_control_plane(
        obj if kind == MACHINE else mapping(spec_of(obj).get("template"))
    )
    return Part(kind, key_of(obj), plane, _asked(kind, obj), tuple(runs), _how(kind, obj, plane))


def _machine_spec(kind: Kind, obj: Obj) -> Mapping[str, Any]:
    return spec_of(obj) if kind == MACHINE else mapping(mapping(spec_of(obj).get("template")).get("spec"))


def _asked(kind: Kind, obj: Obj) -> Version | None:
    if kind == CONTROL_PLANE:
        return parse(str(spec_of(obj).get("version") or ""))
    return parse(_kubelet(spec_of(obj))) if kind == MACHINE else kubelet_of_template(obj)


def _how(kind: Kind, obj: Obj, plane: bool) -> str:
    """In place or by replacement, as the object itself asks for it."""
    spec = spec_of(obj)
    if kind == MACHINE:
        return "its provider is asked to change the host in place" + (
            "" if plane else ", and makes another if it can't"
        )
    if kind == MACHINE_SET:
        return "new Machines have the version; those that are there stay as they are"
    if kind == CONTROL_PLANE:
        wanted = mapping(spec.get("rollout")).get("inPlace")
    else:
        strategy = mapping(spec.get("strategy"))
        if strategy.get("type", "RollingUpdate") == "OnDelete":
            return "a Machine is replaced when somebody deletes it"
        wanted = mapping(strategy.get("rollingUpdate")).get("inPlace")
    return _HOW.get(InPlace(wanted) if wanted in set(InPlace) else InPlace.NEVER, "")


def _versions(parts: Iterable[Part]) -> Iterator[Version]:
    for part in parts:
        yield from part.runs or ((part.asked,) if part.asked is not None else ())


def _kubelet(holder: Mapping[str, Any]) -> str:
    return str(mapping(holder.get("versions")).get("kubelet") or "")


def _unknown(wanted: Version) -> Iterator[str]:
    first, last = KUBEADM_KNOWN
    if wanted[0] != 1 or not first <= wanted[1] <= last:
        yield f"this version of Nodewright knows kubeadm from 1.{first} to 1.{last}"


def _way(cluster: Cluster, wanted: Version) -> Iterator[str]:
    oldest, newest = cluster.oldest_plane, cluster.newest_plane
    if oldest is None or newest is None:
        return
    if wanted[:2] < newest[:2]:
        yield f"it is older than {dotted(newest)}, and a control plane can't go back"
    if wanted[0] != oldest[0] or wanted[1] > oldest[1] + 1:
        yield f"it skips a minor version; go to {oldest[0]}.{oldest[1] + 1} before"


def _left_behind(cluster: Cluster, wanted: Version) -> Iterator[str]:
    """A kubelet may be three minor versions older than the API server, no more."""
    if not cluster.planes:
        return
    oldest = (wanted[0], wanted[1] - OLDEST_SKEW)
    behind = [part.title for part in cluster.workers if any(each[:2] < oldest for each in _versions((part,)))]
    if behind:
        names = some_of(sorted(behind), _MOST_NAMES)
        yield f"it bears kubelets from {oldest[0]}.{oldest[1]} on, and these have older ones: {names}"
