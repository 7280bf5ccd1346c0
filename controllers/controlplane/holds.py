"""What holds a ControlPlane's steps back: its own policy, the versions of the cluster's kubelets, and known hazards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from api.conditions import MachineCondition, Reason
from api.views import ControlPlaneSpecView
from controllers.bootstrap.hazards import Context, hazards
from controllers.bootstrap.join import OLDEST_SKEW
from controllers.controlplane.state import InPlace, Policy
from controllers.kernel.conditions import find, parse_time, some_of
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.refs import (
    MACHINE,
    POD,
    Key,
    generation_of,
    is_deleting,
    key_of,
    mapping,
    runs_control_plane,
    spec_of,
    status_of,
)
from controllers.kernel.version import Version, dotted, parse
from controllers.kernel.view import CLUSTER_NAME, View

STATIC_NAMESPACE = "kube-system"
_MOST_NAMES = 5


@dataclass(frozen=True, slots=True)
class Scene:
    """``status``: the ControlPlane's; ``machines``: its own, the oldest first; ``cluster``: ``namespace/name``.

    ``etcd``: the oldest version of a member, "" until all members have reported theirs.
    """

    spec: ControlPlaneSpecView
    status: Mapping[str, Any]
    machines: tuple[MachineFacts, ...]
    now: datetime
    cluster: str
    view: View
    etcd: str = ""


def policy(scene: Scene) -> Policy:
    """What the planner may do, and why it may not do the rest."""
    rollout = scene.spec.rollout
    held = "spec.rollout.paused" if rollout.paused else upgrade_problem(scene)
    return Policy(rollout.max_surge, InPlace(rollout.in_place), _exhausted(scene), held)


def version_problem(spec: ControlPlaneSpecView) -> str:
    """Why the spec names no control plane, "" if it does."""
    if not spec.cluster_name:
        return "spec.clusterName: must name a Cluster"
    return "" if parse(spec.version or "") else f"spec.version: {spec.version!r} is no version like 1.36.3"


# -- upgrades


def upgrade_problem(scene: Scene) -> str:
    """Why no Machine may get ``spec.version``, "" if one may. Checked before anything is touched."""
    wanted = parse(scene.spec.version or "")
    have = sorted(_asked_for(scene))
    if wanted is None or not have:
        return ""
    problem = _way(have, wanted)
    if problem or wanted == have[0]:
        return problem
    return _workers_left_behind(scene, wanted) or _hazard(scene, have[0], wanted)


def went_back(machine: MachineFacts) -> str:
    """Why its update failed, if its host went back to what it was; "" else."""
    found = find(status_of(machine.body).get("conditions"), MachineCondition.UP_TO_DATE) or {}
    failed = found.get("status") == "False" and found.get("reason") == Reason.UPDATE_FAILED
    known = found.get("observedGeneration", 0) >= generation_of(machine.body)
    return str(found.get("message") or "?") if failed and known else ""


def _asked_for(scene: Scene) -> Iterator[Version]:
    """Versions that the Machines are of, or are on the way to. One whose host went back is of its API server's."""
    for machine in scene.machines:
        asked = parse(str(mapping(spec_of(machine.body).get("versions")).get("controlPlane") or ""))
        version = (_runs(machine, scene.view) or asked) if went_back(machine) else asked
        if version is not None and not machine.deleting:
            yield version


def _runs(machine: MachineFacts, view: View) -> Version | None:
    """By the image of its API server; None if nobody can tell."""
    pod = view.get(POD, Key(STATIC_NAMESPACE, f"kube-apiserver-{machine.node_name}"))
    listed = spec_of(pod).get("containers") if pod is not None else None
    images = [str(mapping(each).get("image") or "") for each in (listed if isinstance(listed, list) else ())]
    found = [parse(image.partition("@")[0].rpartition(":")[2]) for image in images]
    return found[0] if len(found) == 1 else None


def _way(have: list[Version], wanted: Version) -> str:
    """Control planes go up by one minor version at a time, and never down (kubeadm, Kubernetes's skew policy)."""
    lowest, highest, title = have[0], have[-1], f"spec.version: {dotted(wanted)}"
    if wanted[:2] < highest[:2]:
        return f"{title} is older than {dotted(highest)}, and a control plane can't go back"
    if wanted[0] != lowest[0] or wanted[1] > lowest[1] + 1:
        return f"{title} skips a minor version; go to {lowest[0]}.{lowest[1] + 1} before"
    return ""


def _workers_left_behind(scene: Scene, wanted: Version) -> str:
    """A kubelet may be three minor versions older than the oldest API server, no more (version skew policy).

    A control plane of 1.36 bears kubelets from 1.33 on.
    """
    oldest = (wanted[0], wanted[1] - OLDEST_SKEW)
    behind = []
    for machine in scene.view.indexed(MACHINE, CLUSTER_NAME, scene.cluster):
        if runs_control_plane(machine) or is_deleting(machine):
            continue
        reported = mapping(status_of(machine).get("versions")).get("kubelet")
        version = parse(str(reported or mapping(spec_of(machine).get("versions")).get("kubelet") or ""))
        if version is not None and version[:2] < oldest:
            behind.append(f"{key_of(machine).name} ({dotted(version)})")
    if not behind:
        return ""
    return (
        f"spec.version: {dotted(wanted)} bears kubelets from {oldest[0]}.{oldest[1]} on, and these are older: "
        f"{some_of(sorted(behind), _MOST_NAMES)}; upgrade them first"
    )


def _hazard(scene: Scene, lowest: Version, wanted: Version) -> str:
    """What is known to break on this way. The role that newer API servers need is made on the way (cluster_version)."""
    context = Context(control_plane=True, kubelet_client_binding=True, etcd_version=scene.etcd)
    found = hazards(dotted(lowest), dotted(wanted), context)
    return next((f"spec.version: {hazard.message}" for hazard in found if hazard.kind == "refuse"), "")


# -- remediation


def replaced_at(status: Mapping[str, Any], *, now: datetime, within: timedelta) -> tuple[datetime, ...]:
    """When Machines were removed that did not work, without a pause of ``within`` (``minHealthyPeriod``) since."""
    listed = mapping(status.get("replaced")).get("times")
    times = [parse_time(text) for text in (listed if isinstance(listed, list) else ())]
    chain: list[datetime] = []
    after = now
    for moment in sorted((time for time in times if time is not None), reverse=True):
        if after - moment >= within:
            break
        chain.insert(0, moment)
        after = moment
    return tuple(chain)


def _exhausted(scene: Scene) -> str:
    """Why no further Machine is replaced for its health, "" if one may be."""
    limits = scene.spec.remediation
    times = replaced_at(scene.status, now=scene.now, within=limits.min_healthy_period)
    if mapping(scene.status.get("replaced")).get("machine") in {m.key.name for m in scene.machines}:
        return ""  # that replacement is under way
    if limits.max_retry is not None and len(times) > limits.max_retry:
        return (
            f"{len(times)} Machines were replaced one after the other, spec.remediation.maxRetry is {limits.max_retry}"
        )
    if times and scene.now - times[-1] < max(limits.retry_period, timedelta(0)):
        return "spec.remediation.retryPeriod has not passed since the last replacement"
    return ""
