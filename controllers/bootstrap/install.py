"""Settings and versions → steps that install containerd, kubelet and kubeadm, or check what the image has."""

from __future__ import annotations

from dataclasses import dataclass

from api.bootstrap import PackageRepository
from controllers.bootstrap import documents, prepare, runtime
from controllers.bootstrap.join import Join
from controllers.bootstrap.steps import (
    Architecture,
    Archive,
    Binary,
    Command,
    Configure,
    Download,
    Files,
    Packages,
    Present,
    Repository,
    Service,
    Step,
)

VERSION_COMMANDS = {"kubelet": "/usr/bin/kubelet --version", "kubeadm": "/usr/bin/kubeadm version -o short"}
_PACKAGED_UNIT = "/usr/lib/systemd/system/kubelet.service"
"""The unit that packages of kubelet bring: ours would hide it."""
_LONG = 900.0


@dataclass(frozen=True, slots=True)
class _Mirror:
    url: str
    architecture: str
    kubelet: str
    kubeadm: str


def install_steps(join: Join) -> tuple[Step, ...]:
    """The runtime first: the kubelet's unit wants it."""
    return (*_sources(join), *runtime_steps(join), *_kubernetes(join))


def _sources(join: Join) -> tuple[Step, ...]:
    packages, archives = join.settings.spec.packages, join.settings.spec.archives
    if join.settings.source == "Archives" and archives:
        return (Step("check the architecture", Architecture(archives.architecture or "amd64")),)
    if join.settings.source != "Packages" or packages is None or not packages.extra:
        return repositories(join)
    extra = Packages(tuple((name, "") for name in sorted(packages.extra)), hold=False)
    return (*repositories(join), Step("install further packages", extra, timeout=_LONG))


def repositories(join: Join) -> tuple[Step, ...]:
    """Those that the packages come from; () with another source."""
    packages = join.settings.spec.packages
    if join.settings.source != "Packages" or packages is None:
        return ()
    steps = []
    minor = ".".join(join.kubelet_version.split(".")[:2])
    for name, found, holds in (
        ("kubernetes", packages.repository, ("kubelet", "kubeadm", "kubectl", "cri-tools", "kubernetes-cni")),
        ("runtime", packages.runtime_repository, (packages.runtime_package or "containerd",)),
    ):
        if found:
            steps.append(
                Step(f"configure the repository of {name}", _repository(name, found, minor, holds), timeout=_LONG)
            )
    return tuple(steps)


def kubernetes_program(join: Join, program: str) -> Step | None:
    """The step that installs kubelet or kubeadm in its version; None where the image has to bring it."""
    version, mirror = join.kubelet_version, _mirror(join)
    label = f"install {program} {version}"
    if mirror is not None:
        url = f"{mirror.url.rstrip('/')}/v{version}/bin/linux/{mirror.architecture}/{program}"
        digest = mirror.kubelet if program == "kubelet" else mirror.kubeadm
        binary = Binary(f"/usr/bin/{program}", url, version, VERSION_COMMANDS[program], digest)
        return Step(label, binary, timeout=_LONG)
    if join.settings.source == "Packages":
        return Step(label, Packages(((program, version),)), timeout=_LONG)
    return None


def present(join: Join, program: str) -> Step:
    """The step that looks whether the host has the kubelet or kubeadm in its version."""
    version = join.kubelet_version
    return Step(f"check {program} {version}", Present(f"/usr/bin/{program}", VERSION_COMMANDS[program], version))


def _repository(name: str, found: PackageRepository, minor: str, holds: tuple[str, ...]) -> Repository:
    suite = (found.suite or "/").replace("{minor}", minor)
    components = tuple(found.components or ())
    return Repository(name, found.url.replace("{minor}", minor), suite, components, found.signing_key, holds)


def runtime_steps(join: Join) -> tuple[Step, ...]:
    """containerd with its configuration, and what it needs: installed, or looked for."""
    settings, version = join.settings, join.container_runtime.partition("/")[2].removeprefix("v")
    path, steps = "/usr/bin/containerd", []
    label = f"containerd {version}".rstrip()
    if settings.source == "Packages":
        package = (settings.spec.packages and settings.spec.packages.runtime_package) or "containerd"
        steps.append(Step(f"install {label}", Packages(((package, version),)), timeout=_LONG))
    archives = settings.spec.archives if settings.source == "Archives" else None
    if archives and archives.containerd:
        path = "/usr/local/bin/containerd"
        unpack = Archive("/usr/local", archives.containerd.url, archives.containerd.sha256)
        steps.append(Step(f"install {label}", unpack, timeout=_LONG))
        steps.append(Step("configure containerd's unit", Files((documents.containerd_unit(),))))
    if archives and archives.runc:
        program = Download("/usr/local/sbin/runc", archives.runc.url, archives.runc.sha256)
        steps.append(Step("install runc", program, timeout=_LONG))
    if archives and archives.cni_plugins:
        plugins = Archive("/opt/cni/bin", archives.cni_plugins.url, archives.cni_plugins.sha256)
        steps.append(Step("install CNI plugins", plugins, timeout=_LONG))
    return (
        *steps,
        Step(f"check {label}", Present(path, f"{path} --version", version)),
        *_runtime_config(join),
        Step("start containerd", Service(runtime.UNIT)),
    )


def _runtime_config(join: Join) -> tuple[Step, ...]:
    """The image's configuration stays where nothing is installed and nothing is asked for."""
    spec = join.settings.spec
    asked, registries = spec.containerd, (spec.containerd and spec.containerd.registries) or {}
    steps = []
    if registries:
        steps.append(Step("configure registries", Files(runtime.registry_files(registries))))
    own = prepare.runtime_file(spec.files)
    if own:
        steps.append(Step("configure containerd", Configure(own, runtime.UNIT)))
    elif join.settings.source != "Image" or asked or spec.cgroup_driver:
        image = (asked and asked.sandbox_image) or ""
        written = runtime.config(image, systemd_cgroup=spec.cgroup_driver != "cgroupfs")
        steps.append(Step("configure containerd", written))
    return tuple(steps)


def _kubernetes(join: Join) -> tuple[Step, ...]:
    version = join.kubelet_version
    packaged = join.settings.source == "Packages" and _mirror(join) is None
    steps = []
    if packaged:
        names = tuple((name, version) for name in VERSION_COMMANDS)
        steps.append(Step(f"install kubelet and kubeadm {version}", Packages(names), timeout=_LONG))
    for program in VERSION_COMMANDS if not packaged else ():
        steps.append(kubernetes_program(join, program) or present(join, program))
    unit = Files((documents.kubelet_unit(),))
    # kubeadm has systemd reload its units before it starts the kubelet (initsystem_unix.go, ServiceStart)
    return (
        *steps,
        Step("configure the kubelet's unit", unit, (_PACKAGED_UNIT,) if packaged else ()),
        Step("enable the kubelet", Command(("systemctl", "enable", "--no-reload", "kubelet.service"))),
    )


def _mirror(join: Join) -> _Mirror | None:
    own = join.install
    if own.mirror:
        return _Mirror(own.mirror, own.architecture, own.sha256.get("kubelet", ""), own.sha256.get("kubeadm", ""))
    archives = join.settings.spec.archives if join.settings.source == "Archives" else None
    if archives is None or archives.kubernetes is None:
        return None
    digests = archives.kubernetes.sha256
    return _Mirror(
        archives.kubernetes.mirror,
        archives.architecture or "amd64",
        (digests and digests.kubelet) or "",
        (digests and digests.kubeadm) or "",
    )
