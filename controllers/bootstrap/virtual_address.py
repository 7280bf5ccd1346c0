"""A virtual address for the API servers of a control plane: kube-vip as a static pod, from an image of the user's.

The address is that of ``Cluster.spec.controlPlaneEndpoint``. The host whose kube-vip holds a Lease in the cluster
announces it by ARP (or NDP). The first host needs it while ``kubeadm init`` runs, and from Kubernetes 1.29 on
``admin.conf`` may do nothing before its end (kube-vip#684), so kube-vip begins with ``super-admin.conf`` there.
"""

from __future__ import annotations

import ipaddress
import json
from typing import Any

from api.bootstrap import VirtualAddress
from controllers.bootstrap.join import Join
from controllers.bootstrap.refusal import Refusal
from controllers.bootstrap.steps import File, Files, Step

MANIFEST = "/etc/kubernetes/manifests/kube-vip.yaml"
ENDPOINT_FIELD = "Cluster.spec.controlPlaneEndpoint.host"
_ADMIN = "/etc/kubernetes/admin.conf"
_SUPER_ADMIN = "/etc/kubernetes/super-admin.conf"


def asked(join: Join) -> VirtualAddress | None:
    """None where the user has something else in front of the API servers."""
    settings = join.settings.spec.control_plane
    return settings.virtual_address if join.control_plane is not None and settings is not None else None


def refusals(join: Join) -> tuple[Refusal, ...]:
    if asked(join) is None or _address(join) is not None:
        return ()
    host = _parts(join)[0]
    return (Refusal(ENDPOINT_FIELD, f"must be an IP address with virtualAddress, and {host[:64]!r} is none"),)


def before_init(join: Join) -> tuple[Step, ...]:
    """On the host that makes the cluster."""
    return _written(join, _SUPER_ADMIN)


def once_joined(join: Join) -> tuple[Step, ...]:
    """On every host, as soon as it is of the control plane, and at each upgrade."""
    return _written(join, _ADMIN)


def manifest(join: Join, kubeconfig: str) -> dict[str, Any]:
    """The static pod. ``join`` asks for one, and ``refusals`` has nothing against it."""
    settings, address = asked(join), _address(join)
    assert settings is not None
    assert address is not None
    variables = {
        "vip_arp": "true",
        "address": str(address),
        "port": _parts(join)[1],
        "vip_interface": settings.interface,
        "vip_cidr": str(address.max_prefixlen),  # until 0.8
        "vip_subnet": str(address.max_prefixlen),  # from 0.9 on
        "cp_enable": "true",
        "cp_namespace": "kube-system",
        "vip_leaderelection": "true",
        "vip_leasename": "plndr-cp-lock",
        "vip_leaseduration": "15",
        "vip_renewdeadline": "10",
        "vip_retryperiod": "2",
    }
    container = {
        "name": "kube-vip",
        "image": settings.image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["manager"],
        "env": [
            {"name": "vip_nodename", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            *({"name": name, "value": value} for name, value in variables.items() if value),
        ],
        "securityContext": {"capabilities": {"add": ["NET_ADMIN", "NET_RAW"], "drop": ["ALL"]}},
        "volumeMounts": [{"name": "kubeconfig", "mountPath": _ADMIN, "readOnly": True}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "kube-vip", "namespace": "kube-system"},
        "spec": {
            "hostNetwork": True,
            "priorityClassName": "system-node-critical",
            # Its certificate has the name: kube-vip reaches the API server of its own host, never itself.
            "hostAliases": [{"ip": "127.0.0.1", "hostnames": ["kubernetes"]}],
            "containers": [container],
            # Without the type an empty folder would be made of the file that kubeadm is about to write.
            "volumes": [{"name": "kubeconfig", "hostPath": {"path": kubeconfig, "type": "File"}}],
        },
    }


def _written(join: Join, kubeconfig: str) -> tuple[Step, ...]:
    if asked(join) is None:
        return ()
    text = json.dumps(manifest(join, kubeconfig), indent=1, sort_keys=True) + "\n"
    return (Step("write the static pod of the virtual address", Files((File(MANIFEST, text, 0o600),))),)


def _address(join: Join) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(_parts(join)[0])
    except ValueError:
        return None


def _parts(join: Join) -> tuple[str, str]:
    """Host and port of the endpoint; an IPv6 address is in brackets there."""
    host, _, port = (join.control_plane.endpoint if join.control_plane is not None else "").rpartition(":")
    return host.removeprefix("[").removesuffix("]"), port
