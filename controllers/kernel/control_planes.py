"""Machines that run the control plane of their Cluster, and what its other hosts have to know of them."""

from __future__ import annotations

from dataclasses import dataclass

from controllers.kernel.refs import MACHINE, key_of, mapping, status_of
from controllers.kernel.version import Version, parse
from controllers.kernel.view import CONTROL_PLANE_OF, View


@dataclass(frozen=True, slots=True)
class Oldest:
    """The Machine whose API server may be the oldest. ``version``: of its kubelet, which kubeadm upgrades last."""

    machine: str
    version: Version


def oldest_of(cluster: str, view: View) -> Oldest | None:
    """``cluster``: ``namespace/name``. None: no Machine of its control plane has reported a version.

    Behind one endpoint any API server may answer, so a kubelet must not be newer than the oldest of them (Kubernetes:
    version skew policy): with 1.36.3, 1.35.4 and 1.36.3 it is 1.35.4.
    """
    found = []
    for machine in view.indexed(MACHINE, CONTROL_PLANE_OF, cluster):
        version = parse(str(mapping(status_of(machine).get("versions")).get("kubelet") or ""))
        if version is not None:
            found.append(Oldest(key_of(machine).name, version))
    return min(found, key=lambda each: (each.version, each.machine), default=None)
