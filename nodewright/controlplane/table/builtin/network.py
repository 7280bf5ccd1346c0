"""Services and what is behind them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from nodewright.controlplane.table.builtin.basics import age, items, labels_text
from nodewright.controlplane.table.printer import NONE, Printer, columns, name_of, part
from nodewright.controlplane.values import Obj

_SHOWN_ENDPOINTS = 3


def _service(obj: Obj, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    return [
        name_of(obj),
        spec.get("type") or "ClusterIP",
        spec.get("clusterIP") or NONE,
        _external(obj, spec),
        ",".join(_port(port) for port in items(spec, "ports")) or NONE,
        age(obj, now),
        labels_text(part(spec, "selector")),
    ]


def _external(obj: Obj, spec: Obj) -> str:
    type_ = spec.get("type") or "ClusterIP"
    if type_ == "ExternalName":
        return str(spec.get("externalName", ""))
    addresses: list[str] = []
    if type_ == "LoadBalancer":
        ingress = items(part(obj, "status", "loadBalancer"), "ingress")
        addresses = sorted({i.get("ip") or i.get("hostname") or "" for i in ingress} - {""})
    addresses += spec.get("externalIPs") or []
    return ",".join(addresses) or ("<pending>" if type_ == "LoadBalancer" else NONE)


def _port(port: Obj) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{node_port}/{port.get('protocol') or 'TCP'}"


def _endpoints(obj: Obj, now: datetime) -> list[Any]:
    all_ = list(_each_endpoint(obj))
    shown = ",".join(all_[:_SHOWN_ENDPOINTS]) or NONE
    more = len(all_) - _SHOWN_ENDPOINTS
    return [name_of(obj), f"{shown} + {more} more..." if more > 0 else shown, age(obj, now)]


def _each_endpoint(obj: Obj) -> Iterator[str]:
    for subset in items(obj, "subsets"):
        addresses = [address.get("ip", "") for address in items(subset, "addresses")]
        ports = items(subset, "ports")
        if not ports:
            yield from addresses
        for port in ports:
            for ip in addresses:
                yield f"[{ip}]:{port.get('port', 0)}" if ":" in ip else f"{ip}:{port.get('port', 0)}"


PRINTERS = {
    ("v1", "Service"): Printer(columns("Name | Type | Cluster-IP | External-IP | Port(s) | Age | +Selector"), _service),
    ("v1", "Endpoints"): Printer(columns("Name | Endpoints | Age"), _endpoints),
}
