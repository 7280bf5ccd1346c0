"""Files that a joining host gets: kubeadm's configuration, the discovery kubeconfig, units and kernel settings.

Documents are JSON, which every reader of YAML takes and in which no string is mistaken for a number or a bool
(``1e5`` or ``y`` of a token would be).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from api import yamltext
from api.bootstrap import BootstrapSpec
from api.noderules import kubelet_may_set
from controllers.bootstrap.join import Join
from controllers.bootstrap.steps import File

FOLDER = "/etc/nodewright"
"""Folder of our own files on the host; 0700."""
JOIN_CONFIG = f"{FOLDER}/join.json"
DISCOVERY = f"{FOLDER}/discovery.json"
PATCHES = f"{FOLDER}/patches"
"""kubeadm's patches. They stay: an upgrade of the host needs them again."""
SYSCTL_FILE = "/etc/sysctl.d/90-nodewright.conf"
CONTAINERD_SOCKET = "unix:///run/containerd/containerd.sock"
MODULES_FILE = "/etc/modules-load.d/nodewright.conf"
MODULES = ("overlay", "br_netfilter")
SYSCTLS = {
    "net.bridge.bridge-nf-call-iptables": "1",
    "net.bridge.bridge-nf-call-ip6tables": "1",
    "net.ipv4.ip_forward": "1",
}
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")

_KUBELET_UNIT = """\
[Unit]
Description=kubelet: the Kubernetes node agent
Wants=network-online.target
After=network-online.target containerd.service

[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
--kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
Restart=always
StartLimitInterval=0
RestartSec=10

[Install]
WantedBy=multi-user.target
"""


_CONTAINERD_UNIT = """\
[Unit]
Description=containerd container runtime
After=network.target local-fs.target

[Service]
ExecStartPre=-/sbin/modprobe overlay
ExecStart=/usr/local/bin/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec=5
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target
"""


def host_files(modules: Sequence[str] = MODULES, sysctls: Mapping[str, str] | None = None) -> tuple[File, ...]:
    """Kernel modules and settings that Kubernetes and the user ask of a host, kept over a reboot."""
    settings = {**SYSCTLS, **(sysctls or {})}
    return (
        File(MODULES_FILE, "".join(f"{name}\n" for name in modules)),
        File(SYSCTL_FILE, "".join(f"{name} = {value}\n" for name, value in sorted(settings.items()))),
    )


def containerd_unit() -> File:
    """For a containerd that was unpacked into /usr/local; packages bring a unit of their own."""
    return File("/etc/systemd/system/containerd.service", _CONTAINERD_UNIT)


def kubelet_unit() -> File:
    return File("/etc/systemd/system/kubelet.service", _KUBELET_UNIT)


def join_files(join: Join) -> tuple[File, ...]:
    """The two documents that hold the token. They go when the host has joined."""
    return (
        File(DISCOVERY, as_json(_discovery(join)), 0o600, secret=True),
        File(JOIN_CONFIG, as_json(join_configuration(join)), 0o600, secret=True),
    )


def patch_files(spec: BootstrapSpec) -> tuple[File, ...]:
    """kubeadm applies them in the order of their names: ``target`` + suffix + ``+type`` (kubeadm: util/patches)."""
    own: dict[str, Any] = {"failSwapOn": False} if spec.swap == "Keep" else {}
    if spec.cgroup_driver:
        own["cgroupDriver"] = spec.cgroup_driver
    configuration = own | (spec.kubelet_configuration or {})
    files = []
    if configuration:
        files.append(File(f"{PATCHES}/kubeletconfiguration00+merge.json", as_json(configuration)))
    for number, patch in enumerate(spec.patches or (), 1):
        name = f"{patch.target}{number:02d}+{patch.type or 'strategic'}.json"
        files.append(File(f"{PATCHES}/{name}", as_json(yamltext.load(patch.patch))))
    return tuple(files)


def join_configuration(join: Join) -> dict[str, Any]:
    """``JoinConfiguration`` of kubeadm.k8s.io/v1beta4, which kubeadm 1.31 and newer read.

    Discovery is by file: the CA and the server are known, so neither anonymous reads of ``cluster-info`` nor its
    signature are needed; the token is for the TLS bootstrap alone.
    """
    patches = {"patches": {"directory": PATCHES}} if patch_files(join.settings.spec) else {}
    control_plane: dict[str, Any] = {"controlPlane": {}} if join.control_plane is not None else {}
    return (
        patches
        | {
            "apiVersion": "kubeadm.k8s.io/v1beta4",
            "kind": "JoinConfiguration",
            "discovery": {"file": {"kubeConfigPath": DISCOVERY}, "tlsBootstrapToken": join.token},
            "nodeRegistration": registration(join),
        }
        | control_plane
    )


def registration(join: Join) -> dict[str, Any]:
    """``nodeRegistration`` of kubeadm. A control plane without taints of its own gets kubeadm's."""
    found: dict[str, Any] = {
        "criSocket": CONTAINERD_SOCKET,
        "kubeletExtraArgs": _kubelet_args(join),
    }
    if join.taints or join.control_plane is None:
        found["taints"] = [_taint(taint.key, taint.value, taint.effect) for taint in join.taints]
    if join.node_name:
        found["name"] = join.node_name
    if ignored := ignored_errors(join):
        found["ignorePreflightErrors"] = ignored
    return found


def ignored_errors(join: Join) -> list[str]:
    """Checks of kubeadm that may fail, sorted."""
    wanted = join.settings.spec.node_registration
    return sorted({*join.ignore_preflight_errors, *((wanted and wanted.ignore_preflight_errors) or ())})


def _kubelet_args(join: Join) -> list[dict[str, str]]:
    # A kubelet ends at once on labels that it may not set itself. The Machine controller sets those on the Node.
    labels = ",".join(f"{key}={value}" for key, value in sorted(join.labels.items()) if kubelet_may_set(key))
    wanted = join.settings.spec.node_registration
    own = [{"name": "node-labels", "value": labels}] if labels else []
    extra = (wanted and wanted.kubelet_extra_args) or ()
    return own + [{"name": each.name, "value": each.value} for each in extra]


def _taint(key: str, value: str, effect: str) -> dict[str, str]:
    return {"key": key, "effect": effect} | ({"value": value} if value else {})


def _discovery(join: Join) -> dict[str, Any]:
    cluster = {"server": join.server, "certificate-authority-data": base64.b64encode(join.ca.encode()).decode()}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "", "cluster": cluster}],
        "contexts": [],
        "users": [],
        "current-context": "",
    }


def as_json(document: dict[str, Any] | list[Any]) -> str:
    """JSON that is YAML too: Go's reader takes no half of a surrogate pair as ``\\ud800`` (so characters stand as they
    are) and no character that YAML calls unprintable (so those are escaped)."""
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"
