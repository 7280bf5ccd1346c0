"""Bodies of Octavia's requests. Pure. A load balancer is made with all that is below it by one request (API v2.0)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from providers.base.endpoints import EndpointRequest
from providers.openstack.cluster_config import LoadBalancer

_CHECK = {"delay": 5, "timeout": 3, "max_retries": 2, "max_retries_down": 2}
"""Seconds between two checks of a host, and for one; how many turn it. A host that ends is out after 10 to 16 s."""


def balancer_body(request: EndpointRequest, wanted: LoadBalancer, subnet: str, mark: str) -> dict[str, Any]:
    """With its listener, its pool and what checks the hosts: an API server whose etcd is away takes connections and
    does not answer (ADR 0033), so ``/readyz`` is asked where the provider can. OVN's takes TCP alone.
    """
    ovn = wanted.provider == "ovn"
    asks = {"type": "TCP"} if ovn else {"type": "HTTPS", "http_method": "GET", "url_path": "/readyz"}
    pool = {
        "name": "kube-apiserver",
        "protocol": "TCP",
        "lb_algorithm": "SOURCE_IP_PORT" if ovn else "ROUND_ROBIN",
        "healthmonitor": {"name": "kube-apiserver", **asks, **_CHECK},
    }
    listener = {"name": "kube-apiserver", "protocol": "TCP", "protocol_port": request.port, "default_pool": pool}
    return {
        "name": f"{request.namespace}-{request.name}"[:255],
        "description": mark,
        "vip_subnet_id": subnet,
        "listeners": [listener],
        **({"provider": wanted.provider} if wanted.provider else {}),
    }


def members_body(members: Mapping[str, str], port: int) -> dict[str, Any]:
    """All members of a pool, by one request that takes the place of those that are there. ``members``: Machine UID to
    address."""
    return {"members": [{"name": uid, "address": address, "protocol_port": port} for uid, address in members.items()]}


def is_as_wanted(there: Iterable[Mapping[str, Any]], members: Mapping[str, str], port: int) -> bool:
    """Whether a pool has these members and no others."""
    have = {(one.get("name"), one.get("address"), one.get("protocol_port")) for one in there}
    return have == {(uid, address, port) for uid, address in members.items()}
