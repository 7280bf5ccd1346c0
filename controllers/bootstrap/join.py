"""What a host has to know to join: the input of ``plan.join_steps``, and what is refused of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from api.kubeletfields import SINCE, too_new
from controllers.bootstrap import control_plane
from controllers.bootstrap.control_plane import ControlPlane
from controllers.bootstrap.refusal import Refusal
from controllers.bootstrap.settings import PATH, Settings
from providers.base.contract import Taint

__all__ = ["Install", "Join", "Refusal", "refusals"]

TOKEN = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")
"""A bootstrap token (kubeadm: ``[a-z0-9]{6}.[a-z0-9]{16}``)."""
_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})\.(\d{1,4})(?:[-+][0-9A-Za-z.+-]{1,63})?", re.ASCII)
_ENDPOINT = re.compile(r"https://[A-Za-z0-9.:\[\]-]{1,253}")
_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
OLDEST_SKEW = 3
"""A kubelet may be up to three minor versions older than the API server (version skew policy, since 1.28)."""


@dataclass(frozen=True, slots=True)
class Install:
    """Where kubelet and kubeadm come from without a ``spec.bootstrap``. ``mirror``: base URL with the layout of
    dl.k8s.io (``<mirror>/v<version>/bin/linux/<architecture>/kubelet``); "": the image has them.
    ``sha256``: program → digest; a program without one is compared with the digest that the mirror serves.
    """

    mirror: str = ""
    architecture: str = "amd64"
    sha256: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Join:
    """A host that joins. Versions are numbers without ``v``; ``server``: URL of the API server as hosts reach it;
    ``ca``: PEM of the CA that signed its certificate; ``cluster_version``: "" if it is not known; ``node_name``: "" if
    the Node is called as the host is, which several hosts with the same user data need. ``settings``: see
    ``settings.effective``; ``install`` counts where it names a mirror. ``control_plane``: None for a worker. Its CA and
    token may be known later than all else; ``ca`` is "" until then. ``contents``: of files, by name and key of their
    Secrets; what is not among them is shown by these alone.
    """

    kubelet_version: str
    server: str
    ca: str
    token: str
    node_name: str = ""
    cluster_version: str = ""
    container_runtime: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    install: Install = Install()
    ignore_preflight_errors: tuple[str, ...] = ()
    settings: Settings = field(default_factory=Settings)
    control_plane: ControlPlane | None = None
    contents: Mapping[tuple[str, str], bytes] = field(default_factory=dict, repr=False)


def refusals(join: Join, *, upgrades: bool = False) -> tuple[Refusal, ...]:
    """All that is wrong with ``join``; () if steps can be made of it. ``upgrades``: the host has joined already.

    A worker of 1.36 on a cluster of 1.35 is refused, one of 1.32 is allowed, one of 1.31 is refused. For control planes
    see ``control_plane.refusals``.
    """
    found = [
        *(
            _pattern(join.node_name, _NODE_NAME, "node_name", "must be a DNS name in lower case")
            if join.node_name
            else ()
        ),
        *_pattern(join.kubelet_version, _VERSION, "kubelet_version", "must be a whole version such as 1.36.3"),
        *_pattern(join.server, _ENDPOINT, "server", "must be https://HOST:PORT without a path"),
        *_pattern(join.token, TOKEN, "token", "must be a bootstrap token"),
    ]
    if "-----BEGIN CERTIFICATE-----" not in join.ca and not awaits_ca(join):
        found.append(Refusal("ca", "must be the PEM of a certificate"))
    if join.control_plane is not None:
        versions = control_plane.Known(join.kubelet_version, join.cluster_version, upgrades)
        found += control_plane.refusals(join.control_plane, versions)
    elif join.cluster_version and not found:
        found += _skew(join)
    return (*found, *join.settings.faults, *_too_new(join))


def awaits_ca(join: Join) -> bool:
    """Whether the CA is still to come: that of a control plane that Machines make."""
    return join.control_plane is not None and not join.ca


def _pattern(value: str, pattern: re.Pattern[str], name: str, message: str) -> list[Refusal]:
    return [] if pattern.fullmatch(value) else [Refusal(name, message)]


def _too_new(join: Join) -> list[Refusal]:
    """A kubelet does not start with a field that it does not know yet."""
    version = _VERSION.fullmatch(join.kubelet_version)
    names = too_new(join.settings.spec.kubelet_configuration or {}, int(version[2])) if version else ()
    text = "is not known to a kubelet of {}, only to one of 1.{} and newer"
    return [
        Refusal(f"{PATH}.kubeletConfiguration.{name}", text.format(join.kubelet_version, SINCE[name])) for name in names
    ]


def _skew(join: Join) -> list[Refusal]:
    cluster = _VERSION.fullmatch(join.cluster_version)
    kubelet = _VERSION.fullmatch(join.kubelet_version)
    if cluster is None or kubelet is None:
        return [Refusal("cluster_version", f"{join.cluster_version[:32]!r} is no version")]
    behind = int(cluster[2]) - int(kubelet[2])
    if cluster[1] != kubelet[1] or behind < 0:
        text = f"{join.kubelet_version} is newer than the API server, which is {join.cluster_version}, and waits for it"
        return [Refusal("kubelet_version", text, skew=True)]
    if behind > OLDEST_SKEW:
        text = f"{join.kubelet_version} is more than {OLDEST_SKEW} minor versions older than the API server"
        return [Refusal("kubelet_version", f"{text}, which is {join.cluster_version}", skew=True)]
    return []
