"""What a host that runs a control plane has to know besides what every host does."""

from __future__ import annotations

from dataclasses import dataclass, field

from controllers.bootstrap.authorities import Pki
from controllers.bootstrap.refusal import Refusal


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """``version``: without ``v``; ``endpoint``: ``host:port`` that all hosts reach; ranges: CIDRs with commas, "" for
    kubeadm's own. ``initializes``: this host makes the cluster. ``pki`` None: not given yet; it is in no digest.
    """

    cluster: str
    version: str
    endpoint: str
    services: str = ""
    pods: str = ""
    dns_domain: str = ""
    initializes: bool = True
    pki: Pki | None = field(default=None, repr=False, compare=False)


def refusals(control_plane: ControlPlane, kubelet_version: str) -> tuple[Refusal, ...]:
    """What is wrong for a control plane, besides what is wrong for any host."""
    if kubelet_version != control_plane.version:
        text = (
            f"must be {control_plane.version} as versions.controlPlane: kubeadm of one version sets both up, and "
            "a kubelet may not be newer than its API server"
        )
        return (Refusal("kubelet_version", text, skew=True),)
    return ()
