"""The tables of Services and of the addresses behind them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from nodewright.apiserver.table.layout import AGE, NAME, Cells, Layout, text, wide
from nodewright.apiserver.table.wording import NONE, age, at, joined, labels_text, name
from nodewright.apiserver.values import Obj

_SHOWN_ENDPOINTS: Final = 3


def _service(obj: Obj, now: datetime) -> Cells:
    ips = at(obj, "spec", "clusterIPs", default=())
    ports = joined(map(_port, at(obj, "spec", "ports", default=()))) or NONE
    kind = at(obj, "spec", "type", default="ClusterIP")
    return [
        name(obj),
        kind,
        ips[0] if ips else at(obj, "spec", "clusterIP", default=NONE) or NONE,
        _external(obj, str(kind)),
        ports,
        age(obj, now),
        labels_text(at(obj, "spec", "selector")),
    ]


def _port(port: Obj) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{node_port}/{port.get('protocol', 'TCP')}"


def _external(obj: Obj, kind: str) -> str:
    external = list(at(obj, "spec", "externalIPs", default=()))
    if kind == "ExternalName":
        return str(at(obj, "spec", "externalName", default=""))
    if kind == "LoadBalancer":
        ingress = at(obj, "status", "loadBalancer", "ingress", default=())
        return joined([*sorted({i.get("ip") or i.get("hostname", "") for i in ingress}), *external]) or "<pending>"
    return joined(external) or NONE


def _endpoints(obj: Obj, now: datetime) -> Cells:
    subsets = at(obj, "subsets", default=())
    addresses = [text for subset in subsets for text in _addresses(subset)]
    shown = joined(addresses[:_SHOWN_ENDPOINTS])
    more = len(addresses) - _SHOWN_ENDPOINTS
    return [name(obj), (f"{shown} + {more} more..." if more > 0 else shown) if subsets else NONE, age(obj, now)]


def _addresses(subset: Obj) -> list[str]:
    ips = [str(address.get("ip", "")) for address in at(subset, "addresses", default=())]
    ports = at(subset, "ports", default=())
    if not ports:
        return ips
    return [
        f"[{ip}]:{port.get('port', 0)}" if ":" in ip else f"{ip}:{port.get('port', 0)}" for port in ports for ip in ips
    ]


LAYOUTS: Final = {
    ("", "Service"): Layout(
        (
            NAME,
            text("Type"),
            text("Cluster-IP"),
            text("External-IP"),
            text("Port(s)"),
            AGE,
            wide(text("Selector")),
        ),
        _service,
    ),
    ("", "Endpoints"): Layout((NAME, text("Endpoints"), AGE), _endpoints),
}
