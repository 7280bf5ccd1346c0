"""The vocabulary of steps. Each has a name for people and a check that says whether it is done already."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class File:
    """A file of the host. ``secret``: its content must not be shown, logged or kept once the host has joined."""

    path: str
    content: str
    mode: int = 0o644
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Files:
    """Write files as root, each beside its place and renamed into it."""

    files: tuple[File, ...]


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


Action = Files | Binary | Present | Modules | Service | Command


@dataclass(frozen=True, slots=True)
class Step:
    """``name``: what people read ("install kubelet 1.36.3"). ``done_if``: paths that exist once it is done; () if it is
    safe and cheap to repeat. ``timeout``: seconds. ``undo``: runs before the step does where it was begun before and is
    not done: after a failure, or a reboot in the middle of it.
    """

    name: str
    action: Action
    done_if: tuple[str, ...] = ()
    timeout: float = 300.0
    undo: Command | None = None


@dataclass(frozen=True, slots=True)
class Reporting:
    """To whom a host tells how far it is: the API server that it joins, with its own bootstrap token."""

    server: str
    ca: str
    token: str


@dataclass(frozen=True, slots=True)
class Steps:
    """All steps of a host in their order, and the files that are removed when the last one has succeeded.

    ``reporting`` None: the host tells nobody how far it is.
    """

    steps: tuple[Step, ...]
    forget: tuple[str, ...] = field(default=())
    reporting: Reporting | None = None
