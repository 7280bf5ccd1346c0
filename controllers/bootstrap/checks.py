"""Joins that can't work although each value is well-formed: refused with the field, before anything is created."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from api import limits
from api.noderules import EFFECTS
from api.selectors import label_key_error, label_value_error
from api.yamltext import shown
from controllers.bootstrap import authority
from controllers.bootstrap.hazards import Context, Hazard, hazards
from controllers.bootstrap.join import Join, Refusal, awaits_ca

MOST_PROBLEMS: Final = 16
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*", re.ASCII)
_MIRROR: Final = re.compile(r"(https?://[A-Za-z0-9.:\[\]_-]+|file://)(/[A-Za-z0-9._~:/@%+=-]*)?", re.ASCII)
_NAME_ANOTHER: Final = "name an address at which all hosts reach the API server"
_FIELDS: Final[Mapping[str, str]] = {
    "ca": "the CA in the kubeconfig of the Cluster",
    "cluster_version": "the version that the API server of the Cluster tells",
    "control_plane_version": "spec.versions.controlPlane of the Machine",
    "container_runtime": "spec.versions.containerRuntime of the Machine",
    "ignore_preflight_errors": "spec.bootstrap.nodeRegistration.ignorePreflightErrors",
    "install": "spec.bootstrap.archives of the Machine or its Cluster",
    "kubelet_version": "spec.versions.kubelet of the Machine",
    "labels": "spec.metadata.labels of the Machine",
    "node_name": "metadata.name of the Machine",
    "server": "status.apiEndpoints of the Cluster, or the server in its kubeconfig",
    "taints": "spec.taints of the Machine",
    "token": "the bootstrap token",
}


def where(field: str) -> str:
    """What a person has to change for a field of ``Join``: ``labels[a b]`` is ``spec.metadata.labels[a b] of the
    Machine``. A path of a spec stays as it is.
    """
    name, bracket, rest = field.partition("[")
    found = _FIELDS.get(name.partition(".")[0])
    if found is None:
        return field
    path, _, owner = found.partition(" of ")
    return f"{path}{bracket}{rest} of {owner}" if bracket and owner else found


def problems(join: Join, now: datetime | None = None) -> tuple[Refusal, ...]:
    """What can't work. ``now``, with a time zone, is for the dates of the CA; None looks at none."""
    ca = () if awaits_ca(join) else _ca(join.ca, now)
    found = [*_server(join.server), *ca, *_node_name(join.node_name), *_labels(join), *_taints(join)]
    if join.install.mirror and not _MIRROR.fullmatch(join.install.mirror):
        text = "must be an http, https or file URL without credentials or a query"
        found.append(Refusal("install.mirror", text))
    found += [Refusal(_field(each), each.message) for each in _hazards(join) if each.kind == "refuse"]
    return tuple(found[:MOST_PROBLEMS])


def late_ca(ca: str, now: datetime) -> Refusal | None:
    """What is wrong with a CA now that was none of ``problems`` without a moment: its dates."""
    problem = authority.dates_problem(ca, now)
    return Refusal("ca", problem) if problem else None


def warnings(join: Join) -> tuple[str, ...]:
    """What goes now, and a later version breaks."""
    return tuple(each.message for each in _hazards(join) if each.kind == "warn")


def _hazards(join: Join) -> tuple[Hazard, ...]:
    spec = join.settings.spec
    args = (spec.node_registration and spec.node_registration.kubelet_extra_args) or ()
    known = Context(
        cluster_version=join.cluster_version,
        container_runtime=join.container_runtime,
        control_plane=join.control_plane is not None,
        kubelet_configuration=spec.kubelet_configuration or {},
        kubelet_args={each.name: each.value for each in args},
    )
    return hazards("", join.kubelet_version, known)


def _field(hazard: Hazard) -> str:
    return "kubelet_version" if hazard.field == "spec.versions.kubelet" else hazard.field


def _server(server: str) -> Iterator[Refusal]:
    try:
        parts = urlsplit(server)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        yield Refusal("server", f"{shown(server)} is no URL: it must be https://HOST:PORT")
        return
    if not host or port == 0 or parts.username is not None:
        yield Refusal("server", f"{shown(server)} must be https://HOST:PORT, with a port from 1 to 65535")
        return
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        yield from _server_name(host)
        return
    if address.is_loopback or address.is_unspecified or address.is_multicast or address.is_link_local:
        text = f"{address} means something else on each host: {_NAME_ANOTHER}"
        yield Refusal("server", text)


def _server_name(host: str) -> Iterator[Refusal]:
    looks_like_an_address = host.rpartition(".")[2].isdigit()
    if len(host) > limits.MAX_OBJECT_NAME or not _NAME.fullmatch(host) or looks_like_an_address:
        yield Refusal("server", f"{shown(host)} is neither a DNS name nor an IP address")
    elif host == "localhost" or host.endswith(".localhost"):
        yield Refusal("server", f"localhost is each host itself: {_NAME_ANOTHER}")
    elif host in ("kubernetes", "kubernetes.default") or host.endswith((".svc", ".svc.cluster.local")):
        yield Refusal("server", f"{shown(host)} is known to pods only: {_NAME_ANOTHER}")


def _ca(pem: str, now: datetime | None) -> Iterator[Refusal]:
    if problem := authority.problem(pem, now):
        yield Refusal("ca", problem)


def _node_name(name: str) -> Iterator[Refusal]:
    if len(name) > limits.MAX_NODE_NAME:
        text = f"has {len(name)} characters, at most {limits.MAX_NODE_NAME} are allowed: it is a label's value too"
        yield Refusal("node_name", f"{text}; give the Machine a shorter name")
    elif name and not _NAME.fullmatch(name):
        yield Refusal("node_name", f"{shown(name)} must be a DNS name in lower case")


def _labels(join: Join) -> Iterator[Refusal]:
    for key, value in join.labels.items():
        fault = label_key_error(key) or label_value_error(value)
        if fault:
            yield Refusal(f"labels[{shown(key)}]", f"no Node can be registered with it: {fault}")


def _taints(join: Join) -> Iterator[Refusal]:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(join.taints):
        if fault := label_key_error(taint.key):
            yield Refusal(f"taints[{index}].key", f"{shown(taint.key)}: {fault}")
        if fault := label_value_error(taint.value):
            yield Refusal(f"taints[{index}].value", f"{shown(taint.value)}: {fault}")
        if taint.effect not in EFFECTS:
            yield Refusal(f"taints[{index}].effect", f"{shown(taint.effect)} is none of {', '.join(EFFECTS)}")
        if (taint.key, taint.effect) in seen:
            text = f"{shown(taint.key)} is there with the effect {shown(taint.effect)} already: no Node has both"
            yield Refusal(f"taints[{index}]", f"{text}; keep one")
        seen.add((taint.key, taint.effect))
