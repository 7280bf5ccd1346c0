"""``spec.bootstrap``: what is installed on a host and how the host is prepared before it joins.

A Cluster gives defaults for all of its Machines and a Machine (or the template of a set) overrides them;
``controllers.bootstrap.settings.effective`` merges the two. Nothing in it may be a secret, since specs are read by
many; files may come from one.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from api import limits
from api.bootstraprules import PATH_PATTERN, REGISTRY_PATTERN, SYSCTL_PATTERN, URL_PATTERN
from api.meta import Duration
from api.model import ATOMIC_LIST, PRESERVE, SET, Model, Rule, Schema, list_map

Url = Annotated[str, Field(min_length=8, max_length=1024, pattern=URL_PATTERN)]
Sha256 = Annotated[str, Field(max_length=64, pattern=r"^[a-f0-9]{64}$")]
HostPath = Annotated[str, Field(max_length=512, pattern=PATH_PATTERN)]
Line = Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""One line of text without control characters."""
AccountName = Annotated[str, Field(max_length=32, pattern=r"^[a-z_][a-z0-9_-]{0,31}$")]
Argument = Annotated[str, Field(max_length=4096, pattern=r"^[^\x00]*$")]
PackageName = Annotated[str, Field(max_length=64, pattern=r"^[a-z0-9][a-z0-9.+-]*$")]
Pem = Annotated[str, Field(max_length=limits.MAX_BOOTSTRAP_KEY)]


class PackageRepository(Model):
    """A repository of packages. In its fields ``{minor}`` stands for the kubelet's minor version (``1.36``),
    ``{format}`` for ``deb`` or ``rpm``, ``{codename}`` and ``{id}`` for VERSION_CODENAME and ID of the host's
    ``/etc/os-release``."""

    url: Url
    """Where it is, such as ``https://pkgs.k8s.io/core:/stable:/v{minor}/{format}/``. Without credentials."""
    suite: Annotated[str, Field(max_length=128, pattern=r"^[A-Za-z0-9._/{}-]+$")] | None = None
    """Suite (apt only), such as ``{codename}``. Without it, or with one that ends in ``/``, the repository is flat."""
    components: (
        Annotated[
            list[Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9._/-]+$")]], Field(max_length=8), ATOMIC_LIST
        ]
        | None
    ) = None
    """Components (apt only), such as ``main``. A flat repository has none."""
    signing_key: Pem
    """Public key that signs the packages, as text (``-----BEGIN PGP PUBLIC KEY BLOCK-----``). The host trusts it for
    this repository only."""


class PackageSource(Model):
    """Packages of apt (Debian, Ubuntu) or dnf (RHEL, Rocky, Fedora, Amazon Linux); the host knows which."""

    repository: PackageRepository | None = None
    """Repository of kubelet and kubeadm. Without it the repositories count that the image has configured."""
    runtime_repository: PackageRepository | None = None
    """Repository of containerd. Without it the repositories count that the image has configured."""
    runtime_package: PackageName | None = None
    """Package that brings containerd: ``containerd`` (the default), ``containerd.io``."""
    extra: Annotated[list[PackageName], Field(max_length=64), SET] | None = None
    """Further packages to install, in any version."""


class KubernetesChecksums(Model):
    """SHA-256 of the programs, 64 hexadecimal digits each."""

    kubelet: Sha256 | None = None
    """SHA-256 of kubelet."""
    kubeadm: Sha256 | None = None
    """SHA-256 of kubeadm."""


class KubernetesArchive(Model):
    """kubelet and kubeadm as files of a server."""

    mirror: Url
    """URL under which files lie as on dl.k8s.io: ``MIRROR/v1.36.3/bin/linux/amd64/kubelet``."""
    sha256: KubernetesChecksums | None = None
    """Checksums. One that is missing is read from the mirror (``kubelet.sha256``), which has to be https then."""


class Archive(Model):
    """One file to download."""

    url: Url
    """Where it is."""
    sha256: Sha256
    """Its SHA-256. Nothing of a file with another one is installed."""


class ArchiveSource(Model):
    """Files from a server, such as a mirror without internet. What is not named the image has to bring."""

    architecture: Literal["amd64", "arm64"] | None = None
    """Architecture of the files: amd64 (the default) or arm64. A host of another one is refused."""
    kubernetes: KubernetesArchive | None = None
    """kubelet and kubeadm."""
    containerd: Archive | None = None
    """A release of containerd: ``containerd-2.1.4-linux-amd64.tar.gz``."""
    runc: Archive | None = None
    """The program runc: ``runc.amd64``."""
    cni_plugins: Archive | None = None
    """A release of the CNI plugins: ``cni-plugins-linux-amd64-v1.7.1.tgz``."""


class Registry(Model):
    """How images of one registry are pulled."""

    mirrors: Annotated[list[Url], Field(max_length=8), ATOMIC_LIST] | None = None
    """Servers that are tried in this order before the registry itself."""
    override_path: bool | None = None
    """True if the mirrors' URLs hold the path of the API (``/v2/…``) already, as those of some proxies do."""
    ca_certificate: Pem | None = None
    """PEM of the CA that signed the certificates of the mirrors, or of the registry where there are no mirrors."""
    insecure_skip_verify: bool | None = None
    """True leaves certificates of these servers unchecked. Anyone on the way can then replace images."""


_REGISTRY_NAMES = Rule(
    f"self.all(key, size(key) <= 253 && key.matches(r'{REGISTRY_PATTERN}'))",
    "a key must be the host of a registry with an optional port, or _default",
)
_SYSCTL_NAMES = Rule(
    f"self.all(key, size(key) <= 128 && key.matches(r'{SYSCTL_PATTERN}'))",
    "a key must be the name of a kernel setting, such as net.ipv4.ip_forward",
)


class ContainerdSettings(Model):
    """Configuration of containerd, written in the form that the installed version reads."""

    sandbox_image: Annotated[str, Field(max_length=512, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]*$")] | None = None
    """Image of the pods' sandboxes. The runtime's own default without it."""
    registries: Annotated[dict[str, Registry], Field(max_length=32), Schema(rules=(_REGISTRY_NAMES,))] | None = None
    """Registries with mirrors or CAs of their own: host of the registry → how it is reached."""


class Proxy(Model):
    """Proxies for all that the host downloads, for containerd and for the kubelet. Without credentials."""

    http: Url | None = None
    """Proxy of http URLs, such as ``http://10.0.0.9:3128``."""
    https: Url | None = None
    """Proxy of https URLs."""
    no_proxy: (
        Annotated[
            list[Annotated[str, Field(max_length=253, pattern=r"^[A-Za-z0-9.:/*_\[\]-]+$")]],
            Field(max_length=64),
            ATOMIC_LIST,
        ]
        | None
    ) = None
    """Hosts, domains and networks that are reached without. The API server, the host itself, the ranges and the DNS
    domain of the Cluster and the metadata service are added."""


class NTP(Model):
    """Time servers."""

    servers: Annotated[
        list[Annotated[str, Field(max_length=253, pattern=r"^[A-Za-z0-9.:-]+$")]],
        Field(min_length=1, max_length=16),
        ATOMIC_LIST,
    ]
    """Names or addresses. chrony gets them where the host has it, else systemd-timesyncd."""


class SecretContent(Model):
    """One key of a Secret of the type ``nodewright.dev/host-files`` in the namespace of the Machine."""

    name: Annotated[
        str, Field(min_length=1, max_length=limits.MAX_OBJECT_NAME, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    ]
    """Name of the Secret."""
    key: Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[-._a-zA-Z0-9]+$")]
    """Its key."""


class ContentSource(Model):
    """Where the content of a file lies that must not stand in a spec."""

    secret: SecretContent
    """A Secret. It is read when the data for a host is made: hosts that have theirs keep it when the Secret changes."""
    revision: Annotated[str, Field(max_length=63, pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")] | None = None
    """Such as ``2``. A new value brings the present content of the Secret to hosts, like any change of a file."""


class HostFile(Model):
    """A file of the host, written before anything is installed."""

    __rules__: ClassVar = (
        Rule("has(self.content) != has(self.contentFrom)", "exactly one of content and contentFrom must be given"),
        Rule("!has(self.contentFrom) || !has(self.encoding)", "encoding goes with content, not with contentFrom"),
    )

    path: HostPath
    """Where it is to be."""
    content: Annotated[str, Field(max_length=limits.MAX_BOOTSTRAP_FILE)] | None = None
    """Its content. No secret may be in it: specs are read by many."""
    content_from: ContentSource | None = None
    """Where its content comes from instead, if that is secret."""
    encoding: Literal["base64"] | None = None
    """``base64`` for content that is no text."""
    owner: (
        Annotated[str, Field(max_length=65, pattern=r"^[a-z0-9_][a-z0-9_-]{0,31}(:[a-z0-9_][a-z0-9_-]{0,31})?$")] | None
    ) = None
    """Owner, ``user`` or ``user:group``: root:root without it. Users of ``spec.bootstrap.users`` are there by then."""
    permissions: Annotated[str, Field(max_length=4, pattern=r"^0?[0-7]{3}$")] | None = None
    """Mode in octal digits, such as ``"0640"``: 0644 without it."""


class User(Model):
    """A user of the host. It has no password."""

    name: AccountName
    """Login name."""
    groups: Annotated[list[AccountName], Field(max_length=16), SET] | None = None
    """Groups besides its own. They are made if they are missing."""
    shell: HostPath | None = None
    """Login shell: ``/bin/bash`` without it."""
    sudo: Line | None = None
    """What it may do as another user, as in sudoers behind the name: ``ALL=(ALL) NOPASSWD:ALL``."""
    ssh_authorized_keys: (
        Annotated[
            list[Annotated[str, Field(max_length=8192, pattern=r"^[^\x00-\x1f\x7f]+$")]], Field(max_length=32), SET
        ]
        | None
    ) = None
    """Public keys that may log in over SSH, one line each."""


class HostCommand(Model):
    """A program or a script that runs as root. One that has succeeded does not run again on that host."""

    __rules__: ClassVar = (Rule("has(self.argv) != has(self.script)", "exactly one of argv and script must be given"),)

    name: (
        Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9]([A-Za-z0-9 ._-]*[A-Za-z0-9])?$")]
        | None
    ) = None
    """What it does, for people: it is shown while it runs and if it fails."""
    argv: Annotated[list[Argument], Field(min_length=1, max_length=64), ATOMIC_LIST] | None = None
    """Program and arguments. No shell sees them."""
    script: Annotated[str, Field(min_length=1, max_length=limits.MAX_BOOTSTRAP_SCRIPT)] | None = None
    """Text of a script. It runs by its ``#!`` line, or by ``/bin/sh`` without one."""
    timeout: Duration | None = None
    """How long it may take: ``5m`` without it."""


HostCommands = Annotated[list[HostCommand], Field(max_length=limits.MAX_BOOTSTRAP_COMMANDS), ATOMIC_LIST]


class KubeadmPatch(Model):
    """A patch of what kubeadm writes on the host."""

    target: Literal["kubeletconfiguration"]
    """What is patched. A worker has the kubelet's configuration only."""
    type: Literal["strategic", "merge", "json"] | None = None
    """How: ``strategic`` (the default), ``merge`` (RFC 7386) or ``json`` (RFC 6902)."""
    patch: Annotated[str, Field(min_length=2, max_length=limits.MAX_BOOTSTRAP_FILE)]
    """The patch, as YAML or JSON."""


class KubeletArg(Model):
    """A flag of the kubelet."""

    name: Annotated[str, Field(max_length=64, pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")]
    """Name without dashes in front, such as ``node-ip``."""
    value: Annotated[str, Field(max_length=4096, pattern=r"^[^\x00-\x1f\x7f]*$")]
    """Value."""


class NodeRegistration(Model):
    """How kubeadm registers the Node. Labels and taints are the Machine's ``spec.metadata`` and ``spec.taints``."""

    kubelet_extra_args: Annotated[list[KubeletArg], Field(max_length=64), ATOMIC_LIST] | None = None
    """Flags for the kubelet. They count more than ``kubeletConfiguration``."""
    ignore_preflight_errors: (
        Annotated[
            list[Annotated[str, Field(max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]],
            Field(max_length=32),
            SET,
        ]
        | None
    ) = None
    """Checks of kubeadm that only warn, by the names that it prints in brackets."""


class ComponentArg(Model):
    """A flag of a part of the control plane."""

    name: Annotated[str, Field(max_length=64, pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")]
    """Name without dashes in front, such as ``audit-log-maxage``."""
    value: Annotated[str, Field(max_length=4096, pattern=r"^[^\x00-\x1f\x7f]*$")]
    """Value."""


ComponentArgs = Annotated[list[ComponentArg], Field(max_length=64), ATOMIC_LIST]


class VirtualAddress(Model):
    """kube-vip as a static pod on each control-plane host: one of them announces the endpoint's address by ARP."""

    image: Annotated[
        str,
        Field(
            min_length=1,
            max_length=512,
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:-]*(@sha256:[0-9a-f]{64})?$",
        ),
    ]
    """Image of kube-vip, like ``ghcr.io/kube-vip/kube-vip:v0.9.2``. None is pulled that you have not named."""
    interface: Annotated[str, Field(max_length=15, pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$")] = ""
    """Network interface that gets the address, like ``eth0``. Default: the one of the default route."""


class ControlPlaneSettings(Model):
    """What kubeadm makes a control plane with. It counts when the first control-plane Machine makes the cluster;
    kubeadm keeps it in the cluster for those that join."""

    image_repository: (
        Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:-]*$")] | None
    ) = None
    """Registry of the control plane's images; kubeadm's own without it."""
    cert_sans: (
        Annotated[
            list[Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9.:*-]+$")]],
            Field(max_length=32),
            SET,
        ]
        | None
    ) = None
    """Further names and addresses for the certificate of the API server. Those of the host, of the endpoint and of the
    Service are in it already."""
    virtual_address: VirtualAddress | None = None
    """Makes the IP address in the Cluster's ``controlPlaneEndpoint`` one that moves between the hosts, where there is
    no load balancer. The hosts are in one network segment, and nothing else has the address."""
    disabled_addons: Annotated[list[Literal["CoreDNS", "KubeProxy"]], Field(max_length=2), SET] | None = None
    """Add-ons that kubeadm does not install."""
    api_server_extra_args: ComponentArgs | None = None
    """Flags of the API server."""
    controller_manager_extra_args: ComponentArgs | None = None
    """Flags of the controller manager."""
    scheduler_extra_args: ComponentArgs | None = None
    """Flags of the scheduler."""
    etcd_extra_args: ComponentArgs | None = None
    """Flags of etcd."""


class BootstrapSpec(Model):
    """What is installed on a host, and how it is prepared, before it joins as a Node.

    A Machine's fields count more than those of its Cluster: maps merge by key, lists and other values replace.
    """

    endpoint: Annotated[str, Field(max_length=253, pattern=r"^(https://[A-Za-z0-9.:\[\]-]+)?$")] | None = None
    """URL of the API server as hosts reach it, like ``https://10.0.0.1:6443``. Without it the Cluster's
    ``status.apiEndpoints`` count, then what the cluster says of itself."""
    join_timeout: Duration | None = None
    """How long a host may take to join after it was created. Default: ``20m``. After that the Machine's condition
    ``NodeJoined`` has the reason ``JoinTimedOut``.
    """
    source: Literal["Image", "Packages", "Archives"] | None = None
    """Where kubelet, kubeadm and containerd come from. Image: they are there, and only their versions are checked.
    Packages: see ``packages``. Archives: see ``archives``. Without it: the one of the two that is given, else Image."""
    packages: PackageSource | None = None
    """Packages of the distribution or of a repository of yours."""
    archives: ArchiveSource | None = None
    """Files with checksums, from a URL."""
    containerd: ContainerdSettings | None = None
    """Configuration of containerd: sandbox image, mirrors of registries. With source Image and without it, the image's
    own configuration stays."""
    cgroup_driver: Literal["systemd", "cgroupfs"] | None = None
    """Cgroup driver of containerd and kubelet alike. Default: systemd."""
    swap: Literal["Disable", "Keep"] | None = None
    """Disable (the default): swap is turned off, now and at each boot. Keep: it stays, and the kubelet takes it."""
    selinux: Literal["Keep", "Permissive"] | None = None
    """Keep (the default): the host's mode stays; containerd's package then has to bring its policy. Permissive:
    SELinux logs and refuses nothing, now and after each boot."""
    kernel_modules: (
        Annotated[list[Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]], Field(max_length=64), SET]
        | None
    ) = None
    """Kernel modules besides ``overlay`` and ``br_netfilter``, loaded now and at each boot."""
    sysctls: Annotated[dict[str, Line], Field(max_length=64), Schema(rules=(_SYSCTL_NAMES,))] | None = None
    """Kernel settings besides those that Kubernetes asks for: name → value, as text."""
    proxy: Proxy | None = None
    """Proxies of the host."""
    ntp: NTP | None = None
    """Time servers of the host."""
    files: Annotated[list[HostFile], Field(max_length=limits.MAX_BOOTSTRAP_FILES), list_map("path")] | None = None
    """Files of the host."""
    users: Annotated[list[User], Field(max_length=32), list_map("name")] | None = None
    """Users of the host."""
    pre_install_commands: HostCommands | None = None
    """Run after files and users are there, before anything is installed."""
    pre_join_commands: HostCommands | None = None
    """Run when all is installed, before the host joins."""
    post_join_commands: HostCommands | None = None
    """Run after the host has joined."""
    kubelet_configuration: Annotated[dict[str, Any], PRESERVE] | None = None
    """Fields of KubeletConfiguration (``kubelet.config.k8s.io/v1beta1``) for this host, such as ``maxPods``. They patch
    the configuration that kubeadm keeps in the cluster."""
    patches: Annotated[list[KubeadmPatch], Field(max_length=16), ATOMIC_LIST] | None = None
    """Further patches for kubeadm, applied after ``kubeletConfiguration`` in this order."""
    node_registration: NodeRegistration | None = None
    """Flags of the kubelet, and checks of kubeadm to pass over."""
    control_plane: ControlPlaneSettings | None = None
    """The control plane that the first Machine with ``versions.controlPlane`` makes. Workers do not read it."""
