"""The vocabulary of steps. Each has a name for people and a check that says whether it is done already."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class File:
    """A file of the host. ``secret``: its content must not be shown or logged; ``Steps.forget`` says what goes later.

    ``content``: text, or bytes where it is none. ``owner``: ``user`` or ``user:group``, "" for root.
    """

    path: str
    content: str | bytes
    mode: int = 0o644
    secret: bool = False
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Files:
    """Write files as root, each beside its place and renamed into it."""

    files: tuple[File, ...]


@dataclass(frozen=True, slots=True)
class ContentFile:
    """A file whose content, as base64, whoever runs the script puts before it as the variable ``content_NUMBER``."""

    path: str
    number: int
    mode: int = 0o600
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Binary:
    """A program of an archive or mirror: fetched, compared with its SHA-256, then renamed into place.

    ``sha256``: 64 hex digits; "" if the digest is fetched from ``url`` + ``.sha256`` (as dl.k8s.io serves it).
    ``version_command``: prints the version of the program that is installed.
    """

    path: str
    url: str
    version: str
    version_command: str
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Present:
    """A program that the image has to bring: nothing is installed, only its version is compared.

    ``version``: "" accepts every version; ``1.6`` accepts 1.6 and 1.6.20.
    """

    path: str
    version_command: str
    version: str = ""


@dataclass(frozen=True, slots=True)
class Modules:
    """Load kernel modules now; a file of ``Files`` loads them at each boot. One that is built in counts as loaded."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Service:
    """A systemd unit that is enabled, and restarted now where ``restart`` says so, else started."""

    unit: str
    restart: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments, run as root without a shell. ``environment`` is added to that of the step."""

    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """A script of the user: written to a file of its own and executed, by its ``#!`` line or by ``/bin/sh``."""

    content: str


@dataclass(frozen=True, slots=True)
class Configure:
    """Write a file; where it was another one before, a unit that runs is restarted with it."""

    file: File
    unit: str


@dataclass(frozen=True, slots=True)
class RuntimeConfig:
    """containerd's configuration: ``legacy`` for 1.x (``version = 2``), ``current`` for 2.x (``version = 3``)."""

    path: str
    legacy: str
    current: str
    unit: str


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository of packages, for apt or dnf, that the host trusts by this key alone.

    ``{format}``, ``{codename}`` and ``{id}`` in ``url`` and ``suite`` are filled in on the host. ``packages``: what
    comes from it, which an update of the system leaves alone.
    """

    name: str
    url: str
    suite: str
    components: tuple[str, ...]
    key: str
    packages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Packages:
    """Packages with the version that each must have: ``1.36.3`` takes any revision of it, "" any version.

    ``hold``: an update of the system does not change them.
    """

    packages: tuple[tuple[str, str], ...]
    hold: bool = True


@dataclass(frozen=True, slots=True)
class Architecture:
    """The host's architecture must be this one, as Go names it."""

    name: str


@dataclass(frozen=True, slots=True)
class Download:
    """A file from a URL: compared with its SHA-256, then renamed into place."""

    path: str
    url: str
    sha256: str
    mode: int = 0o755


@dataclass(frozen=True, slots=True)
class Archive:
    """A tar archive from a URL: compared with its SHA-256, then unpacked into ``folder``."""

    folder: str
    url: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Account:
    """A user without a password; ``sudo``: the rest of a line of sudoers, "" for none."""

    name: str
    shell: str
    groups: tuple[str, ...] = ()
    sudo: str = ""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoSwap:
    """Swap is off, now and at each boot."""


@dataclass(frozen=True, slots=True)
class Permissive:
    """SELinux, where the host has it, logs and refuses nothing, now and at each boot."""


@dataclass(frozen=True, slots=True)
class TimeServers:
    """Servers for chrony, or for systemd-timesyncd where there is no chrony."""

    servers: tuple[str, ...]


Action = (
    Files
    | ContentFile
    | Binary
    | Present
    | Modules
    | Service
    | Command
    | Script
    | Configure
    | RuntimeConfig
    | Repository
    | Packages
    | Architecture
    | Download
    | Archive
    | Account
    | NoSwap
    | Permissive
    | TimeServers
)


@dataclass(frozen=True, slots=True)
class Step:
    """``name``: what people read ("install kubelet 1.36.3"). ``done_if``: paths that exist once it is done; () if it is
    safe and cheap to repeat. ``timeout``: seconds. ``once``: name of a mark that is set when it has succeeded and keeps
    it from being done again; "" for what has a check of its own. ``undo``: runs before the step does where it was begun
    before and is not done: after a failure, or a reboot in the middle of it. ``rescue``: a script that runs when the
    step has failed ``rescue_after`` times, "" for none; if it succeeds the host is as it was before, and nothing is
    tried again.
    """

    name: str
    action: Action
    done_if: tuple[str, ...] = ()
    timeout: float = 300.0
    once: str = ""
    undo: Command | None = None
    rescue: str = ""
    rescue_after: int = 1


@dataclass(frozen=True, slots=True)
class Reporting:
    """To whom a host tells how far it is: the API server that it joins, with its own bootstrap token.

    ``tells_end``: it says too that all steps have succeeded. Its token lives until then.
    """

    server: str
    ca: str
    token: str
    tells_end: bool = False


@dataclass(frozen=True, slots=True)
class Steps:
    """All steps of a host in their order, and the files that are removed when the last one has succeeded.

    ``environment``: variables of all steps, such as proxies. ``reporting`` None: the host tells nobody how far it is.
    """

    steps: tuple[Step, ...]
    forget: tuple[str, ...] = field(default=())
    environment: tuple[tuple[str, str], ...] = ()
    reporting: Reporting | None = None
