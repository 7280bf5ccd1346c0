"""Workers get the control plane's version after it, if the ControlPlane says so: one MachineDeployment at a time."""

from __future__ import annotations

from dataclasses import dataclass

from api.views import ControlPlaneSpecView
from controllers.controlplane.waiting import kubelet_of_template
from controllers.kernel.actions import Patch
from controllers.kernel.control_planes import oldest_of
from controllers.kernel.ownership import paused_by
from controllers.kernel.refs import (
    MACHINE_DEPLOYMENT,
    Obj,
    generation_of,
    is_deleting,
    key_of,
    ref_of,
    resource_version_of,
    spec_of,
    status_of,
)
from controllers.kernel.version import Version, parse
from controllers.kernel.view import CLUSTER_NAME, View

TOGETHER = "Together"


@dataclass(frozen=True, slots=True)
class Turn:
    """What is done for workers now. ``patch`` None: ``why`` is what they wait for."""

    why: str
    patch: Patch | None = None


def next_turn(spec: ControlPlaneSpecView, cluster: str, view: View) -> Turn | None:
    """None: nothing is to be done, or the control plane is not there yet. ``cluster``: ``namespace/name``.

    With web at 1.36, db at 1.36 and ``upgradeOrder: [db]``: db gets 1.37, and web when db is rolled out.
    """
    version = parse(spec.version or "")
    oldest = oldest_of(cluster, view)
    if spec.upgrade != TOGETHER or version is None or oldest is None or oldest.version < version:
        return None
    for body in sorted(_of(cluster, view), key=lambda each: _place(each, spec.upgrade_order)):
        turn = _turn(body, spec.version or "", version)
        if turn is not None:
            return turn
    return None


def followers(spec: ControlPlaneSpecView, cluster: str, view: View) -> list[str]:
    """Names of the MachineDeployments that get ``spec.version`` after the control plane, in their order."""
    version = parse(spec.version or "")
    if spec.upgrade != TOGETHER or version is None:
        return []
    listed = sorted(_of(cluster, view), key=lambda each: _place(each, spec.upgrade_order))
    return [key_of(body).name for body in listed if (have := kubelet_of_template(body)) is not None and have < version]


def _turn(body: Obj, wanted: str, version: Version) -> Turn | None:
    have, title = kubelet_of_template(body), f"MachineDeployment {key_of(body).name}"
    if have is None or have > version:
        return None
    if have == version:
        return None if _is_rolled_out(body) else Turn(f"{title} rolls out {wanted}")
    paused = paused_by((body,)) or ("it is paused" if spec_of(body).get("paused") is True else "")
    if paused:
        return Turn(f"{title} does not get {wanted}: {paused}")
    patch = {"spec": {"template": {"spec": {"versions": {"kubelet": wanted.removeprefix("v")}}}}}
    why = f"{title} gets {wanted}, which its control plane has"
    return Turn(why, Patch(ref_of(MACHINE_DEPLOYMENT, body), patch, why, resource_version=resource_version_of(body)))


def _of(cluster: str, view: View) -> list[Obj]:
    return [body for body in view.indexed(MACHINE_DEPLOYMENT, CLUSTER_NAME, cluster) if not is_deleting(body)]


def _place(body: Obj, order: object) -> tuple[int, str]:
    name, named = key_of(body).name, order if isinstance(order, list) else []
    return (named.index(name) if name in named else len(named)), name


def _is_rolled_out(body: Obj) -> bool:
    """As ``kubectl rollout status`` has it: all Machines are of the template and available, and there are no others."""
    status, desired = status_of(body), spec_of(body).get("replicas", 1)
    counts = [status.get(name) or 0 for name in ("replicas", "updatedReplicas", "availableReplicas")]
    return status.get("observedGeneration") == generation_of(body) and counts == [desired] * len(counts)
