"""What a host that runs a control plane has to know besides what every host does."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from controllers.bootstrap.authorities import Pki
from controllers.bootstrap.etcd_snapshot import EtcdSnapshot
from controllers.bootstrap.refusal import Refusal


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """``version``: without ``v``; ``endpoint``: ``host:port`` that all hosts reach; ranges: CIDRs with commas, "" for
    kubeadm's own. ``initializes``: this host makes the cluster. ``pki`` None: not given yet; it is in no digest, and
    neither is ``snapshot``: what is saved before an upgrade, or why that can't be read;
    nor ``renewal``: for each other value but "" the certificates of kubeadm are made anew.
    """

    cluster: str
    version: str
    endpoint: str
    services: str = ""
    pods: str = ""
    dns_domain: str = ""
    initializes: bool = True
    pki: Pki | None = field(default=None, repr=False, compare=False)
    renewal: str = field(default="", repr=False, compare=False)
    snapshot: EtcdSnapshot | str | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Known:
    """``cluster``: version that the API server tells, "" if it does not answer. ``upgrades``: the host runs a control
    plane already.
    """

    kubelet: str
    cluster: str
    upgrades: bool


def refusals(control_plane: ControlPlane, versions: Known) -> tuple[Refusal, ...]:
    """What is wrong for a control plane, besides what is wrong for any host.

    kubeadm upgrades from 1.35 to 1.35 or 1.36, and never back. A host may join with the next minor version, too: the
    configuration that kubeadm finds in the cluster is raised before (``cluster_version``).
    """
    if versions.kubelet != control_plane.version:
        text = (
            f"must be {control_plane.version} as versions.controlPlane: kubeadm of one version sets both up, and "
            "a kubelet may not be newer than its API server"
        )
        return (Refusal("kubelet_version", text, skew=True),)
    if not versions.cluster:
        return ()
    wanted, there = _numbers(control_plane.version), _numbers(versions.cluster)
    back = wanted < there if versions.upgrades else wanted[:2] < there[:2]
    if back:
        text = f"the control plane is {versions.cluster} already: kubeadm takes none back to {control_plane.version}"
        return (Refusal("control_plane_version", text, skew=True),)
    if (wanted[0], wanted[1]) > (there[0], there[1] + 1):
        text = f"from {versions.cluster} the next is {there[0]}.{there[1] + 1}: kubeadm upgrades by one minor version"
        return (Refusal("control_plane_version", text, skew=True),)
    return ()


def _numbers(version: str) -> tuple[int, ...]:
    """``1.36.3-rc.1`` is (1, 36, 3). Total: what is no number counts as 0."""
    parts = (*re.split(r"[-+]", version, maxsplit=1)[0].split("."), "", "")[:3]
    return tuple(int(part) if re.fullmatch(r"[0-9]{1,5}", part) else 0 for part in parts)
