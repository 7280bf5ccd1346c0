"""A control plane that hosts of a lab can join: real parts on the bridge, with what kubeadm puts into a cluster."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from hack import binaries
from hack.hosts.lab import Lab
from hack.hosts.parts import run
from hack.realplane import RealPlane

NO_CGROUP_2 = "SystemVerification"
"""kubeadm's check that fails on cgroup v1; with ``failCgroupV1: false`` kubelets run there all the same."""


@contextlib.contextmanager
def joinable(lab: Lab, folder: Path, *, verifies_kubelets: bool = False) -> Iterator[RealPlane]:
    """All four parts of a control plane, kubeadm's ConfigMaps and its roles for bootstrap tokens.

    With ``verifies_kubelets`` its API server reaches only kubelets whose certificate the cluster's CA has signed.
    """
    plane = RealPlane(
        folder, _reaches_kubelets(folder, verifies_kubelets),
        controller_manager=True, scheduler=True, controllers=("*", "bootstrapsigner", "tokencleaner"),
        address=lab.net.gateway,
    )  # fmt: skip
    with plane:
        config = folder / "kubeadm.yaml"
        config.write_text("\n---\n".join(json.dumps(document) for document in _documents(lab, plane)))
        for phase in (["upload-config", "all"], ["bootstrap-token", "--skip-token-print"]):
            _kubeadm(plane, "init", "phase", *phase, f"--config={config}")
        yield plane


def _reaches_kubelets(folder: Path, verifies: bool) -> tuple[str, ...]:
    """Flags with which `kubectl logs` and `kubectl exec` get through to kubelets, as an administrator."""
    own = (
        f"--kubelet-client-certificate={folder / 'admin.crt'}",
        f"--kubelet-client-key={folder / 'admin.key'}",
        "--kubelet-preferred-address-types=InternalIP",
    )
    return (*own, f"--kubelet-certificate-authority={folder / 'ca.crt'}") if verifies else own


def token(plane: RealPlane) -> str:
    """A bootstrap token that is good for an hour."""
    return _kubeadm(plane, "token", "create", "--ttl=1h").strip()


def join_command(plane: RealPlane) -> str:
    """``kubeadm join …`` with a bootstrap token that is good for an hour."""
    return _kubeadm(plane, "token", "create", "--ttl=1h", "--print-join-command").strip()


def _kubeadm(plane: RealPlane, *arguments: str) -> str:
    return run(str(binaries.ensure("kubeadm")), *arguments, f"--kubeconfig={plane.kubeconfig}")


def _documents(lab: Lab, plane: RealPlane) -> list[dict[str, object]]:
    kubeadm = "kubeadm.k8s.io/v1beta4"
    return [
        {"apiVersion": kubeadm, "kind": "InitConfiguration", "localAPIEndpoint": {"advertiseAddress": lab.net.gateway}},
        {
            "apiVersion": kubeadm,
            "kind": "ClusterConfiguration",
            "kubernetesVersion": binaries.kubernetes_version(),
            "controlPlaneEndpoint": plane.url.removeprefix("https://"),
        },
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "cgroupDriver": "systemd",
            "failCgroupV1": False,
            "failSwapOn": False,
        },
    ]
