"""SSHHostPool: machines that are there already and that Machines take as their hosts, over SSH."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from api import limits
from api.meta import LabelValue, ObjectMeta
from api.model import ATOMIC_LIST, Model, Rule, Schema, list_map
from api.resource import AGE, Column, Resource

_LABEL = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_HOST_KEY = r"^[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,3}( .*)?$"
_ADDRESS = r"^[A-Za-z0-9][A-Za-z0-9.:-]*$"
_HostName = Annotated[str, Field(pattern=_LABEL, max_length=63)]
_HostKey = Annotated[str, Field(pattern=_HOST_KEY, max_length=2048)]
_HostCAs = Annotated[list[_HostKey], Field(min_length=1, max_length=8), ATOMIC_LIST]
_CertificateName = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9][A-Za-z0-9.:_-]*$")]


class SSHProxyJump(Model):
    """A machine that opens the way to another one, as ``ssh -J`` does. It sees nothing of what goes through it."""

    address: Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9.:-]+$")]
    """Where its sshd listens: an IP address or a DNS name."""
    port: Annotated[int, Field(ge=1, le=65535), Schema({"format": "int32"})] = 22
    """Port of its sshd."""
    user: Annotated[str, Field(pattern=r"^[a-z_][-a-z0-9_]{0,31}$", max_length=32)]
    """User to log in as. It needs no rights but to open connections (``AllowTcpForwarding``)."""
    host_keys: Annotated[list[_HostKey], Field(min_length=1, max_length=8), ATOMIC_LIST] | None = None
    """Public keys of it. One that shows another key is refused, unless it shows a certificate of ``hostCAs``."""
    host_cas: _HostCAs | None = None
    """Public keys of those who sign its host certificate. Default: those of the pool."""
    certificate_name: _CertificateName | None = None
    """Name that its host certificate has to be made for (``ssh-keygen -h -n``). Default: ``address``."""
    secret_name: Annotated[str, Field(max_length=limits.MAX_OBJECT_NAME, pattern=_SUBDOMAIN)] | None = None
    """Secret of the same namespace whose ``ssh-privatekey`` logs in on it. Default: that of the pool."""


class SSHPower(Model):
    """How a machine is switched off and on though it does not answer: by a command of the administrator's."""

    command: Annotated[str, Field(pattern=_LABEL, max_length=63)]
    """Name of a command in the file of ``nodewright run --power-commands``. It runs where the controllers run."""
    address: Annotated[str, Field(min_length=1, max_length=253, pattern=_ADDRESS)] | None = None
    """What the command has in place of ``{address}``: an IP address or a DNS name of the machine's BMC."""
    user: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}$", max_length=64)] | None = None
    """What it has in place of ``{user}``."""
    secret_name: Annotated[str, Field(max_length=limits.MAX_OBJECT_NAME, pattern=_SUBDOMAIN)] | None = None
    """Secret of the same namespace whose ``password`` is in the file that it has in place of ``{password-file}``."""


class SSHHost(Model):
    """One machine."""

    __rules__: ClassVar = (
        Rule("!has(self.proxyJump) || !has(self.proxyJumps)", "at most one of proxyJump and proxyJumps can be given"),
    )

    name: _HostName
    """Name of the host within the pool."""
    address: Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9.:-]+$")]
    """Where its sshd listens: an IP address or a DNS name."""
    port: Annotated[int, Field(ge=1, le=65535), Schema({"format": "int32"})] = 22
    """Port of its sshd."""
    user: Annotated[str, Field(pattern=r"^[a-z_][-a-z0-9_]{0,31}$", max_length=32)] = "root"
    """User to log in as. One that is not root has to be allowed ``sudo -n /bin/sh``."""
    host_keys: Annotated[list[_HostKey], Field(min_length=1, max_length=8), ATOMIC_LIST] | None = None
    """Public keys of the host, as ``ssh-keyscan`` prints them after the name: type and base64. A host that shows
    another one is refused, unless it shows a certificate of ``hostCAs``."""
    host_cas: _HostCAs | None = None
    """Public keys of those who sign its host certificate. Default: those of the pool."""
    certificate_name: _CertificateName | None = None
    """Name that its host certificate has to be made for (``ssh-keygen -h -n``). Default: ``address``."""
    labels: Annotated[dict[str, LabelValue], Field(max_length=64)] | None = None
    """Labels by which ``hostSelector`` of an SSHMachineConfig chooses."""
    zone: Annotated[str, Field(max_length=63)] | None = None
    """Failure domain that the host is in."""
    proxy_jump: SSHProxyJump | None = None
    """Machine through which the host is reached. ``address`` is then as that machine sees it."""
    proxy_jumps: Annotated[list[SSHProxyJump], Field(min_length=1, max_length=4), ATOMIC_LIST] | None = None
    """Several such machines, in place of ``proxyJump``: the first one is reached from here, each further one through
    the one before it."""
    power: SSHPower | None = None
    """How it is rebooted while it does not answer. Without it only over SSH."""

    @property
    def way(self) -> tuple[SSHProxyJump, ...]:
        """The machines on the way to it, the nearest one first."""
        return tuple(self.proxy_jumps or ((self.proxy_jump,) if self.proxy_jump else ()))


class SSHHostPoolSpec(Model):
    """The machines, and the key to them."""

    __rules__: ClassVar = (
        Rule(
            "has(self.hostCAs) || self.hosts.all(h, (has(h.hostKeys) || has(h.hostCAs))"
            " && (!has(h.proxyJump) || has(h.proxyJump.hostKeys) || has(h.proxyJump.hostCAs))"
            " && (!has(h.proxyJumps) || h.proxyJumps.all(j, has(j.hostKeys) || has(j.hostCAs))))",
            "each host and each proxy jump needs hostKeys, or hostCAs of its own or of the pool",
            field_path=".hosts",
        ),
    )

    secret_name: Annotated[str, Field(max_length=limits.MAX_OBJECT_NAME, pattern=_SUBDOMAIN)]
    """Secret of the same namespace whose ``ssh-privatekey`` logs in on the hosts (type kubernetes.io/ssh-auth)."""
    host_cas: _HostCAs | None = None
    """Public keys of those who sign the certificates of hosts and proxy jumps (``ssh-keygen -s KEY -h``). A machine
    that shows a certificate of one of them, made for its name and valid now, needs no ``hostKeys``."""
    kubelet_starts_per_hour: Annotated[int, Field(ge=1, le=10), Schema({"format": "int32"})] | None = None
    """How many times within an hour a kubelet that does not run on a host that has joined, as somebody stopped it or it
    failed, is started again. Default: never; it is only reported."""
    hosts: Annotated[list[SSHHost], Field(min_length=1, max_length=1000), list_map("name")]
    """The machines. One that is taken out is no longer asked about: its Machine counts as one without a host."""


class SSHHostReboot(Model):
    """A reboot that a MachineHealthCheck asked for. It is recorded before it is made."""

    attempt: Annotated[str, Field(max_length=63)]
    """Which one: another for each that is asked for."""
    by: Literal["SSH", "Power"]
    """SSH: asked of the host itself. Power: by the host's ``power.command``, which is run once for each attempt."""
    claim: Annotated[str, Field(max_length=64)]
    """Claim during which it was made."""
    boot_id: Annotated[str, Field(max_length=64)] = ""
    """``/proc/sys/kernel/random/boot_id`` before it: with another one it has taken place. Empty where unknown."""
    problem: Annotated[str, Field(max_length=1024)] = ""
    """Why the power command failed."""


class SSHHostStatus(Model):
    """What is known of one host. The claim on the host itself is what counts; this is a copy of it."""

    state: Literal["Free", "Claimed", "Cleaning", "Quarantined", "Unreachable"]
    """Free: a Machine may have it. Cleaning: Kubernetes is being taken off it. Quarantined: that failed, and nobody
    gets it before a person has seen to it. Unreachable: it does not answer; whose it is stays as it was."""
    reason: Annotated[str, Field(max_length=1024)] | None = None
    """Why it is quarantined or unreachable; else what is wrong with it, such as a kubelet that was stopped."""
    machine: Annotated[str, Field(max_length=317)] | None = None
    """Namespace and name of the Machine whose host it is."""
    claim: Annotated[str, Field(max_length=16384)] | None = None
    """Copy of the claim on the host."""
    reboot: SSHHostReboot | None = None
    """The last reboot of it as this Machine's host."""


class SSHHostPoolStatus(Model):
    """What was seen of the hosts at the last look over the pool."""

    hosts: Annotated[dict[str, SSHHostStatus], Field(max_length=1000)] | None = None
    """By name of the host."""
    total: Annotated[int, Schema({"format": "int32"})] | None = None
    """Hosts of the pool."""
    free: Annotated[int, Schema({"format": "int32"})] | None = None
    """Hosts that a Machine may have."""
    claimed: Annotated[int, Schema({"format": "int32"})] | None = None
    """Hosts that are a Machine's, those that are being cleaned among them."""
    quarantined: Annotated[int, Schema({"format": "int32"})] | None = None
    """Hosts that nobody gets before a person has seen to them."""
    unreachable: Annotated[int, Schema({"format": "int32"})] | None = None
    """Hosts that did not answer."""


class SSHHostPool(Model):
    """Machines that are there already. Machines whose config names the pool take one of them each, over SSH."""

    resource: ClassVar = Resource(
        kind="SSHHostPool",
        plural="sshhostpools",
        short_name="shp",
        group="ssh.nodewright.dev",
        version="v1alpha1",
        columns=(
            Column("Hosts", ".status.total", "Hosts of the pool.", "integer"),
            Column("Free", ".status.free", "Hosts that a Machine may have.", "integer"),
            Column("Claimed", ".status.claimed", "Hosts that are a Machine's.", "integer"),
            Column("Quarantined", ".status.quarantined", "Hosts that could not be cleaned.", "integer"),
            Column("Unreachable", ".status.unreachable", "Hosts that did not answer.", "integer"),
            AGE,
        ),
    )

    api_version: Literal["ssh.nodewright.dev/v1alpha1"] = "ssh.nodewright.dev/v1alpha1"
    """Version of the schema of this object."""
    kind: Literal["SSHHostPool"] = "SSHHostPool"
    """Kind of this object."""
    metadata: ObjectMeta = ObjectMeta()
    """Standard metadata."""
    spec: SSHHostPoolSpec
    """The machines, and the key to them."""
    status: SSHHostPoolStatus | None = None
    """What was seen of the hosts."""
