"""What a process with certain controllers has to be allowed to do; the roles in ``deploy/`` grant the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from controllers.kernel.refs import LEASE, WORKLOAD_KINDS, Key, Kind
from nodewright.runtime.settings import wiring
from nodewright.runtime.settings.options import Reconcilers

_OURS = "cluster.k8s.io"
_EVENTS = ("", "events", ("create", "patch"))

WRITES: Mapping[str, tuple[tuple[str, str, tuple[str, ...]], ...]] = {
    "cluster": ((_OURS, "clusters", ("patch",)), (_OURS, "clusters/status", ("patch",))),
    "machinedeployment": (
        (_OURS, "machinedeployments", ("patch",)),
        (_OURS, "machinedeployments/status", ("patch",)),
        (_OURS, "machinedeployments/finalizers", ("update",)),
        (_OURS, "machinesets", ("get", "create", "patch", "delete")),
        _EVENTS,
    ),
    "machineset": (
        (_OURS, "machinesets/status", ("patch",)),
        (_OURS, "machinesets/finalizers", ("update",)),
        (_OURS, "machines", ("get", "create", "patch", "delete")),
        _EVENTS,
    ),
    "machine": (
        (_OURS, "machines", ("patch",)),
        (_OURS, "machines/status", ("patch",)),
        ("", "nodes", ("get", "patch", "delete")),
        ("", "pods", ("get", "delete")),
        ("", "pods/eviction", ("create",)),
        _EVENTS,
    ),
    "machinehealthcheck": (
        (_OURS, "machinehealthchecks/status", ("patch",)),
        (_OURS, "machines/status", ("patch",)),
        _EVENTS,
    ),
    "controlplane": (
        (_OURS, "controlplanes", ("patch",)),
        (_OURS, "controlplanes/status", ("patch",)),
        (_OURS, "controlplanes/finalizers", ("update",)),
        (_OURS, "clusters", ("patch",)),
        (_OURS, "machines", ("get", "create", "patch", "delete")),
        (_OURS, "machinedeployments", ("patch",)),
        ("", "secrets", ("get",)),
        _EVENTS,
    ),
    "certificatesigningrequest": (
        ("certificates.k8s.io", "certificatesigningrequests", ("delete",)),
        ("certificates.k8s.io", "certificatesigningrequests/approval", ("patch",)),
    ),
    "machineclass": ((_OURS, "machineclasses/status", ("patch",)), _EVENTS),
}
"""By controller: group, resource, and the verbs beside list and watch. Of others only the reading is asked for."""


@dataclass(frozen=True, slots=True)
class Right:
    """One verb on one resource, of one object by ``name`` or of all; ``namespace`` "": of all namespaces."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        whole = f"{self.resource}.{self.group}" if self.group else self.resource
        named = f" {self.name}" if self.name else ""
        return f"{self.verb} {whole}{named}{f' in namespace {self.namespace}' if self.namespace else ''}"


def to_begin(reconcilers: Reconcilers, parts: Mapping[Kind, tuple[Key, ...]], leases_in: str) -> tuple[Right, ...]:
    """Rights without which no controller begins, each once. ``parts``: see ``wiring.parts_of``."""
    leases = (Right(verb, LEASE.group, LEASE.plural, leases_in) for verb in ("get", "list", "create", "patch"))
    return tuple(dict.fromkeys([*_reads(reconcilers, parts), *leases]))


def to_work(reconcilers: Reconcilers, namespace: str) -> tuple[Right, ...]:
    """Rights without which some of the work fails, each once. Of Secrets an administrator may name those to be read."""
    return tuple(dict.fromkeys(_writes(reconcilers, namespace)))


def _reads(reconcilers: Reconcilers, parts: Mapping[Kind, tuple[Key, ...]]) -> Iterator[Right]:
    for kind in wiring.kinds_of(reconcilers):
        for key in parts.get(kind, (Key("", ""),)):
            for verb in ("list", "watch"):
                yield Right(verb, kind.group, kind.plural, key.namespace, key.name)


def _writes(reconcilers: Reconcilers, namespace: str) -> Iterator[Right]:
    everywhere = {(kind.group, kind.plural) for kind in WORKLOAD_KINDS}
    for reconciler in reconcilers:
        in_management_cluster = wiring.sees_management_cluster(reconciler)
        for group, resource, verbs in WRITES.get(reconciler.name, ()):
            in_workload = (group, resource.partition("/")[0]) in everywhere
            if in_workload and not in_management_cluster:
                continue
            for verb in verbs:
                yield Right(verb, group, resource, "" if in_workload else namespace)
