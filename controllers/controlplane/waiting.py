"""What of a cluster waits for its control plane: workers whose kubelet would be newer than the oldest API server."""

from __future__ import annotations

from collections.abc import Iterator

from controllers.kernel.conditions import some_of
from controllers.kernel.ownership import controller_of
from controllers.kernel.refs import MACHINE_DEPLOYMENT, MACHINE_SET, Obj, is_deleting, key_of, mapping, spec_of
from controllers.kernel.version import Version, parse
from controllers.kernel.view import CLUSTER_NAME, View

OWNERS = (MACHINE_DEPLOYMENT, MACHINE_SET)
_MOST_NAMES = 3


def waiting_workers(cluster: str, lowest: Version, view: View) -> str:
    """For people: ``MachineDeployment web waits for control plane 1.36``, "" if nobody waits.

    ``cluster``: ``namespace/name``; ``lowest``: the oldest version of its control plane.
    """
    found = sorted(newer_workers(cluster, lowest, view))
    if not found:
        return ""
    minor = max(version[:2] for _, version in found)
    names = some_of([title for title, _ in found], _MOST_NAMES)
    return f"{names} {'waits' if len(found) == 1 else 'wait'} for control plane {minor[0]}.{minor[1]}"


def newer_workers(cluster: str, lowest: Version, view: View) -> Iterator[tuple[str, Version]]:
    """Sets whose Machines are to have a newer kubelet than ``lowest``, and which."""
    for kind in OWNERS:
        for body in view.indexed(kind, CLUSTER_NAME, cluster):
            wanted = kubelet_of_template(body)
            owned = kind == MACHINE_SET and controller_of(body) is not None
            if wanted is not None and not owned and not is_deleting(body) and wanted[:2] > lowest[:2]:
                yield f"{kind} {key_of(body).name}", wanted


def kubelet_of_template(body: Obj) -> Version | None:
    """The version that a set's Machines are to have; None if it names none."""
    template = spec_of(mapping(spec_of(body).get("template")))
    return parse(str(mapping(template.get("versions")).get("kubelet") or ""))
