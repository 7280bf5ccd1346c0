"""kube-proxy and CoreDNS after an upgrade. In place the last ``kubeadm upgrade apply`` brings them to the version, by
replacement nobody does.

Which CoreDNS goes with a Kubernetes is kubeadm's choice (``CoreDNSVersion`` in its constants). Its migration of the
Corefile (coredns/corefile-migration 1.0.31) changes nothing from 1.8.0 on, so the image alone is raised; a Corefile of
the user's stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from controllers.kernel.actions import Patch
from controllers.kernel.refs import DAEMON_SET, DEPLOYMENT, Key, Kind, mapping, ref_of, resource_version_of, spec_of
from controllers.kernel.version import Version, dotted, parse
from controllers.kernel.view import Reached, View

KUBE_PROXY: Final = Key("kube-system", "kube-proxy")
CORE_DNS: Final = Key("kube-system", "coredns")
CORE_DNS_OF: Final[Mapping[int, Version]] = {
    33: (1, 12, 0), 34: (1, 12, 1), 35: (1, 13, 1), 36: (1, 14, 2), 37: (1, 14, 6),
}  # fmt: skip
"""Minor version of Kubernetes 1.x → CoreDNS that its kubeadm installs."""
_OLDEST: Final = (1, 8, 0)
"""The first CoreDNS whose Corefile every later one reads as it is."""
_IMAGE: Final = re.compile(r"(?P<name>(?:[A-Za-z0-9._:/-]*/)?(?P<last>[a-z-]+)):(?P<tag>v[0-9]+\.[0-9]+\.[0-9]+)")


@dataclass(frozen=True, slots=True)
class _Addon:
    """``wanted``: its version for one of Kubernetes, None where nobody knows; ``oldest``: older ones are left alone."""

    kind: Kind
    key: Key
    title: str
    wanted: Callable[[Version], Version | None]
    oldest: Version = (0, 0, 0)


_ADDONS: Final = (
    _Addon(DAEMON_SET, KUBE_PROXY, "kube-proxy", lambda version: version),
    _Addon(DEPLOYMENT, CORE_DNS, "CoreDNS", lambda version: CORE_DNS_OF.get(version[1]), _OLDEST),
)


def next_addon(version: Version, view: View) -> Patch | None:
    """What brings the next of them to ``version``, which the whole control plane has. None: they have it, or are
    somebody else's.

    ``registry.k8s.io/kube-proxy:v1.36.3`` becomes ``registry.k8s.io/kube-proxy:v1.37.0``, and with it
    ``registry.k8s.io/coredns/coredns:v1.13.1`` what kubeadm has for 1.37. An image of another name, with a digest or
    with a newer tag is a choice of the user's.
    """
    if not isinstance(view.workload, Reached):
        return None
    return next(_patches(version, view), None)


def _patches(version: Version, view: View) -> Iterator[Patch]:
    for addon in _ADDONS:
        wanted, body = addon.wanted(version), view.get(addon.kind, addon.key)
        listed = spec_of(mapping(spec_of(body).get("template"))).get("containers") if body is not None else None
        if wanted is None or body is None or not isinstance(listed, list):
            continue
        containers = [_raised(container, addon, wanted) for container in listed]
        if containers != listed:
            patch = {"spec": {"template": {"spec": {"containers": containers}}}}
            why = f"{addon.title} gets {dotted(wanted)}, which goes with {dotted(version)} of the control plane"
            yield Patch(ref_of(addon.kind, body), patch, why, resource_version=resource_version_of(body))


def _raised(container: Any, addon: _Addon, wanted: Version) -> Any:
    found = _IMAGE.fullmatch(str(mapping(container).get("image") or ""))
    there = parse(found["tag"]) if found is not None else None
    if found is None or there is None or found["last"] != addon.key.name or not addon.oldest <= there < wanted:
        return container
    return {**container, "image": f"{found['name']}:v{dotted(wanted)}"}
