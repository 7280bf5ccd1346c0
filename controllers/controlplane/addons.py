"""kube-proxy after an upgrade. In place the last ``kubeadm upgrade apply`` brings it to the version, by replacement
nobody does.

CoreDNS is left alone: which version goes with a Kubernetes, and how its Corefile is migrated, is kubeadm's knowledge.
"""

from __future__ import annotations

import re
from typing import Any, Final

from controllers.kernel.actions import Patch
from controllers.kernel.refs import DAEMON_SET, Key, mapping, ref_of, resource_version_of, spec_of
from controllers.kernel.version import Version, dotted, parse
from controllers.kernel.view import Reached, View

KUBE_PROXY: Final = Key("kube-system", "kube-proxy")
_IMAGE: Final = re.compile(r"(?P<name>[A-Za-z0-9._:/-]*/kube-proxy):(?P<tag>v[0-9]+\.[0-9]+\.[0-9]+)")


def kube_proxy(version: Version, view: View) -> Patch | None:
    """What brings it to ``version``, which the whole control plane has. None: it has it, or it is somebody else's.

    ``registry.k8s.io/kube-proxy:v1.36.3`` becomes ``registry.k8s.io/kube-proxy:v1.37.0``. An image of another name,
    with a digest or with a newer tag is a choice of the user's.
    """
    if not isinstance(view.workload, Reached):
        return None
    body = view.get(DAEMON_SET, KUBE_PROXY)
    listed = spec_of(mapping(spec_of(body).get("template"))).get("containers") if body is not None else None
    if body is None or not isinstance(listed, list):
        return None
    containers = [_raised(container, version) for container in listed]
    if containers == listed:
        return None
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    why = f"kube-proxy gets {dotted(version)}, which all of the control plane has"
    return Patch(ref_of(DAEMON_SET, body), patch, why, resource_version=resource_version_of(body))


def _raised(container: Any, version: Version) -> Any:
    found = _IMAGE.fullmatch(str(mapping(container).get("image") or ""))
    there = parse(found["tag"]) if found is not None else None
    if found is None or there is None or there >= version:
        return container
    return {**container, "image": f"{found['name']}:v{dotted(version)}"}
