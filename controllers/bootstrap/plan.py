"""Join → Steps, or why there are none."""

from __future__ import annotations

from controllers.bootstrap import documents
from controllers.bootstrap.join import Join, Refusal, refusals
from controllers.bootstrap.steps import Binary, Command, Files, Modules, Present, Reporting, Service, Step, Steps

_VERSION_COMMANDS = {"kubelet": "/usr/bin/kubelet --version", "kubeadm": "/usr/bin/kubeadm version -o short"}
JOINED = "/etc/kubernetes/kubelet.conf"
"""kubeadm writes it when the TLS bootstrap is done."""
RUNTIME = "containerd"
_RESET = ("kubeadm", "reset", "--force", "--cri-socket", documents.CONTAINERD_SOCKET)
"""What a join leaves that was not done makes the checks of the next one fail (kubeadm's preflight)."""


def join_steps(join: Join) -> Steps | tuple[Refusal, ...]:
    """The steps of a worker, in their order. All but the join itself may be repeated at any time."""
    wrong = (*refusals(join), *_runtime_refusals(join))
    if wrong:
        return wrong
    forget = tuple(file.path for file in documents.join_files(join))
    reporting = Reporting(join.server, join.ca, join.token)
    return Steps((*_prepare(join), *_install(join), *_join(join)), forget, reporting)


def _runtime_refusals(join: Join) -> tuple[Refusal, ...]:
    name = join.container_runtime.partition("/")[0]
    if name in ("", RUNTIME):
        return ()
    return (Refusal("container_runtime", f"{name[:32]!r} is not known: use {RUNTIME}, or bring user data of your own"),)


def _prepare(join: Join) -> tuple[Step, ...]:
    runtime_version = join.container_runtime.partition("/")[2].removeprefix("v")
    runtime = Present("/usr/bin/containerd", "/usr/bin/containerd --version", runtime_version)
    return (
        Step("configure the kernel", Files(documents.host_files())),
        Step("load kernel modules", Modules(documents.MODULES)),
        Step("apply kernel settings", Command(("sysctl", "--system"))),
        Step("turn off swap", Command(("swapoff", "-a"))),
        Step("keep swap off", Command(("systemctl", "mask", "swap.target"))),
        Step(f"check containerd {runtime_version}".rstrip(), runtime),
        Step("start containerd", Service("containerd.service")),
    )


def _install(join: Join) -> tuple[Step, ...]:
    version = join.kubelet_version
    steps = []
    for program, command in _VERSION_COMMANDS.items():
        path = f"/usr/bin/{program}"
        if not join.install.mirror:
            steps.append(Step(f"check {program} {version}", Present(path, command, version)))
            continue
        url = f"{join.install.mirror.rstrip('/')}/v{version}/bin/linux/{join.install.architecture}/{program}"
        binary = Binary(path, url, version, command, join.install.sha256.get(program, ""))
        steps.append(Step(f"install {program} {version}", binary, timeout=900.0))
    return (
        *steps,
        Step("configure the kubelet's unit", Files((documents.kubelet_unit(),))),
        Step("enable the kubelet", Command(("systemctl", "enable", "kubelet.service"))),
    )


def _join(join: Join) -> tuple[Step, ...]:
    command = Command(("kubeadm", "join", "--config", documents.JOIN_CONFIG))
    return (
        Step("write the join configuration", Files(documents.join_files(join)), (JOINED,)),
        Step("join the cluster", command, (JOINED,), timeout=600.0, undo=Command(_RESET)),
    )
