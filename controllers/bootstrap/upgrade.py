"""Join → the steps that bring a host that has joined to another version of Kubernetes, or why there are none.

kubeadm's order ("Upgrading kubeadm clusters"): kubeadm, ``kubeadm upgrade node`` on workers or ``apply`` on control
planes, kubelet, restart. The steps need no token: kubeadm reads the cluster's settings as the Node that the host is, or
by the host's own admin.conf.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from api import names
from controllers.bootstrap import (
    certificate_renewal,
    documents,
    etcd_snapshot,
    virtual_address,
    way_back,
    worker_change,
)
from controllers.bootstrap.etcd_snapshot import EtcdSnapshot
from controllers.bootstrap.install import kubernetes_program, present, repositories
from controllers.bootstrap.join import Join, Refusal, refusals
from controllers.bootstrap.prepare import environment
from controllers.bootstrap.settings import PATH
from controllers.bootstrap.steps import Command, Files, Service, Step, Steps

_IMAGE_HAS_IT = Refusal(f"{PATH}.source", "the image brings the kubelet, so another version needs another host")
_CONTROL_PLANE_TIME = 1800.0
"""Seconds: kubeadm waits up to 5 minutes for each of the four static pods."""
_OF_CORE_DNS = ("CoreDNSMigration", "CoreDNSUnsupportedPlugins")
"""Checks that kubeadm makes of CoreDNS although the cluster has none of it (seen with 1.36.3)."""


def upgrade_steps(join: Join) -> Steps | tuple[Refusal, ...]:
    """The steps, in their order. All may be repeated at any time. ``join.token`` is in none of them."""
    wrong = (*refusals(join, upgrades=True), *virtual_address.refusals(join))
    if wrong:
        return wrong
    asked = join.control_plane.snapshot if join.control_plane is not None else None
    if isinstance(asked, str):
        return (Refusal(f"metadata.annotations[{names.ETCD_SNAPSHOT}]", asked),)
    server = urlsplit(join.server).hostname or ""
    if join.control_plane is None:
        patched = bool(documents.patch_files(join.settings.spec))
        steps = worker_change.steps(join, _upgraded(join, patched=patched))
        return Steps(steps, environment=environment(join.settings, server))
    kubeadm, kubelet = (kubernetes_program(join, program) for program in ("kubeadm", "kubelet"))
    if kubeadm is None or kubelet is None:
        return (_IMAGE_HAS_IT,)
    patches = documents.patch_files(join.settings.spec)
    attempt = _attempt(join)
    steps = (
        *_saved(join),
        way_back.keep(attempt),
        *repositories(join),
        kubeadm,
        *((Step("write kubeadm's patches", Files(patches)),) if patches else ()),
        *virtual_address.once_joined(join),
        *_renewed(join),
        _upgraded(join, patched=bool(patches)),
        kubelet,
        present(join, "kubelet"),
        Step("restart the kubelet", Service("kubelet.service", restart=True)),
        replace(worker_change.WAIT, rescue=way_back.of_kubelet(attempt)),
    )
    return Steps(steps, environment=environment(join.settings, server))


def no_other_version(join: Join) -> str:
    """Why these steps bring no other version of the kubelet to a worker; "" if they do."""
    return "" if kubernetes_program(join, "kubelet") is not None else _IMAGE_HAS_IT.message


def _attempt(join: Join) -> str:
    """What is tried, for the way back."""
    asked = join.control_plane
    assert asked is not None
    return f"v{asked.version} {asked.renewal}".strip()


def _saved(join: Join) -> tuple[Step, ...]:
    """First of all: what comes after may not be there to save."""
    asked = join.control_plane
    if asked is None or not isinstance(asked.snapshot, EtcdSnapshot):
        return ()
    return (etcd_snapshot.step(asked.snapshot, f"v{asked.version}"),)


def _renewed(join: Join) -> tuple[Step, ...]:
    """Before kubeadm's own upgrade, which works with the host's admin.conf."""
    asked = join.control_plane
    return (certificate_renewal.step(asked.renewal),) if asked is not None and asked.renewal else ()


def _upgraded(join: Join, *, patched: bool) -> Step:
    patches = [f"--patches={documents.PATCHES}"] if patched else []
    if join.control_plane is None:
        command = ("kubeadm", "upgrade", "node", *_passed_over(documents.ignored_errors(join)), *patches)
        return Step("read the cluster's configuration of the kubelet", Command(command))
    asked = join.settings.spec.control_plane
    without_dns = "CoreDNS" in ((asked and asked.disabled_addons) or ())
    ignored = sorted({*documents.ignored_errors(join), *(_OF_CORE_DNS if without_dns else ())})
    # The first of a version uploads the configuration, and the others find it so: the same command serves both.
    version = f"v{join.control_plane.version}"
    command = ("kubeadm", "upgrade", "apply", version, "--yes", *_passed_over(ignored), *patches)
    name, back = f"upgrade the control plane to {version}", way_back.of_control_plane(_attempt(join))
    return Step(name, Command(command), timeout=_CONTROL_PLANE_TIME, rescue=back)


def _passed_over(checks: Sequence[str]) -> tuple[str, ...]:
    return (f"--ignore-preflight-errors={','.join(checks)}",) if checks else ()
