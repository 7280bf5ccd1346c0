"""Files that a joining host gets: kubeadm's configuration, the discovery kubeconfig, units and kernel settings.

Documents are JSON, which every reader of YAML takes and in which no string is mistaken for a number or a bool
(``1e5`` or ``y`` of a token would be).
"""

from __future__ import annotations

import base64
import json
from typing import Any

from api.noderules import kubelet_may_set
from controllers.bootstrap.join import Join
from controllers.bootstrap.steps import File

FOLDER = "/etc/nodewright"
"""Folder of our own files on the host; 0700."""
JOIN_CONFIG = f"{FOLDER}/join.json"
DISCOVERY = f"{FOLDER}/discovery.json"
CONTAINERD_SOCKET = "unix:///run/containerd/containerd.sock"
MODULES = ("overlay", "br_netfilter")
_SYSCTLS = {
    "net.bridge.bridge-nf-call-iptables": "1",
    "net.bridge.bridge-nf-call-ip6tables": "1",
    "net.ipv4.ip_forward": "1",
}

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


def host_files() -> tuple[File, ...]:
    """Kernel modules and settings that Kubernetes asks of a host, kept over a reboot."""
    modules = "".join(f"{name}\n" for name in MODULES)
    settings = "".join(f"{name} = {value}\n" for name, value in _SYSCTLS.items())
    return (
        File("/etc/modules-load.d/nodewright.conf", modules),
        File("/etc/sysctl.d/90-nodewright.conf", settings),
    )


def kubelet_unit() -> File:
    return File("/etc/systemd/system/kubelet.service", _KUBELET_UNIT)


def join_files(join: Join) -> tuple[File, ...]:
    """The two documents that hold the token. They go when the host has joined."""
    return (
        File(DISCOVERY, _json(_discovery(join)), 0o600, secret=True),
        File(JOIN_CONFIG, _json(join_configuration(join)), 0o600, secret=True),
    )


def join_configuration(join: Join) -> dict[str, Any]:
    """``JoinConfiguration`` of kubeadm.k8s.io/v1beta4, which kubeadm 1.31 and newer read.

    Discovery is by file: the CA and the server are known, so neither anonymous reads of ``cluster-info`` nor its
    signature are needed; the token is for the TLS bootstrap alone.
    """
    registration: dict[str, Any] = {
        "criSocket": CONTAINERD_SOCKET,
        "kubeletExtraArgs": _kubelet_args(join),
        "taints": [_taint(taint.key, taint.value, taint.effect) for taint in join.taints],
    }
    if join.node_name:
        registration["name"] = join.node_name
    if join.ignore_preflight_errors:
        registration["ignorePreflightErrors"] = sorted(join.ignore_preflight_errors)
    return {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "JoinConfiguration",
        "discovery": {"file": {"kubeConfigPath": DISCOVERY}, "tlsBootstrapToken": join.token},
        "nodeRegistration": registration,
    }


def _kubelet_args(join: Join) -> list[dict[str, str]]:
    # A kubelet ends at once on labels that it may not set itself. The Machine controller sets those on the Node.
    labels = ",".join(f"{key}={value}" for key, value in sorted(join.labels.items()) if kubelet_may_set(key))
    return [{"name": "node-labels", "value": labels}] if labels else []


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


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=1, sort_keys=True) + "\n"
