"""Join → Steps, or why there are none."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlsplit

from controllers.bootstrap import checks, control_plane_steps, documents, virtual_address
from controllers.bootstrap.install import install_steps
from controllers.bootstrap.join import Join, Refusal, refusals
from controllers.bootstrap.prepare import command_steps, environment, host_steps
from controllers.bootstrap.steps import Command, Files, Reporting, Step, Steps

JOINED = "/etc/kubernetes/kubelet.conf"
"""kubeadm writes it when the TLS bootstrap is done."""
RUNTIME = "containerd"
_RESET = ("kubeadm", "reset", "--force", "--cri-socket", documents.CONTAINERD_SOCKET)
"""What a join leaves that was not done makes the checks of the next one fail (kubeadm's preflight)."""


def join_steps(join: Join, now: datetime | None = None) -> Steps | tuple[Refusal, ...]:
    """The steps of a host, in their order. All but the join itself may be repeated at any time.

    ``now``: for the dates of the CA, which are not looked at without it.
    """
    wrong = (*refusals(join), *virtual_address.refusals(join), *_runtime_refusals(join))
    fields = {each.field for each in wrong}
    wrong += tuple(each for each in checks.problems(join, now) if each.field not in fields)
    if wrong:
        return wrong
    server = urlsplit(join.server).hostname or ""
    makes_cluster = join.control_plane is not None and join.control_plane.initializes
    files = control_plane_steps.init_files(join) if makes_cluster else documents.join_files(join)
    last = _join(join) if join.control_plane is None else control_plane_steps.steps(join, Files(files))
    steps = (*host_steps(join.settings, server, join.contents), *install_steps(join), *last)
    forget = tuple(file.path for file in files)
    # A host that makes the cluster has nobody to report to yet.
    reporting = (
        None if makes_cluster else Reporting(join.server, join.ca, join.token, tells_end=join.control_plane is not None)
    )
    return Steps(steps, forget, environment(join.settings, server), reporting)


def preparing_steps(join: Join) -> Steps | tuple[Refusal, ...]:
    """Those of ``join_steps`` that come before the join and need neither its token nor its CA. A host on which they
    were done passes over them when it joins.
    """
    wrong = (*refusals(join), *_runtime_refusals(join), *checks.problems(join))
    known = tuple(each for each in wrong if each.field != "ca")
    if known:
        return known
    server = urlsplit(join.server).hostname or ""
    steps = (*host_steps(join.settings, server), *install_steps(join))
    return Steps(steps, (), environment(join.settings, server))


def _runtime_refusals(join: Join) -> tuple[Refusal, ...]:
    name = join.container_runtime.partition("/")[0]
    if name in ("", RUNTIME):
        return ()
    return (Refusal("container_runtime", f"{name[:32]!r} is not known: use {RUNTIME}, or bring user data of your own"),)


def _join(join: Join) -> tuple[Step, ...]:
    command = Command(("kubeadm", "join", "--config", documents.JOIN_CONFIG))
    spec = join.settings.spec
    patches = documents.patch_files(spec)
    return (
        *command_steps(spec.pre_join_commands or (), "before the join"),
        *((Step("write kubeadm's patches", Files(patches)),) if patches else ()),
        Step("write the join configuration", Files(documents.join_files(join)), (JOINED,)),
        Step("join the cluster", command, (JOINED,), timeout=600.0, undo=Command(_RESET)),
        *command_steps(spec.post_join_commands or (), "after the join"),
    )
