"""The part of the image that comes from Debian: Python and the libraries that it needs, and no shell.

Packages are fetched by this machine's apt, which checks the archive's signature, with lists of its own, so that it
needs no root and can fetch for another architecture. They are unpacked, not installed: no script of theirs runs.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from hack.release import tree
from hack.release.parts import ReleaseError, run
from hack.release.tree import Tree

NAMES = (
    "ca-certificates", "gcc-12-base", "libbz2-1.0", "libc6", "libcrypt1", "libexpat1", "libffi8", "libgcc-s1",
    "liblzma5", "libpython3.11-minimal", "libpython3.11-stdlib", "libsqlite3-0", "libssl3", "libstdc++6",
    "libuuid1", "media-types", "python3.11-minimal", "tzdata", "zlib1g",
)  # fmt: skip
"""Of Debian 12. Their dependencies too, but for what only scripts of packages and interactive use need."""
SUITE, PYTHON = "bookworm", "3.11"
_LEFT_OUT = re.compile(
    r"usr/(s?bin/(?!python3)|share/(man|info|locale|lintian|bug|perl5|i18n|gcc)/|share/doc/[^/]+/(?!copyright$)"
    r"|share/zoneinfo/(posix|right)/|lib/[^/]+/gconv/|lib/python3\.11/(ensurepip|idlelib|lib2to3|pydoc_data|tkinter)/)"
    r"|etc/(?!mime\.types$)|var/"
)
_MERGED = ("bin", "sbin", "lib", "lib64")
_CERTIFICATES = "usr/share/ca-certificates/"


@dataclass(frozen=True, slots=True)
class Package:
    """``control``: the package's own description, as dpkg keeps it; ``files``: what it brings."""

    name: str
    version: str
    architecture: str
    sha256: str
    control: str
    files: Tree


def fetch(architecture: str, folder: Path) -> list[Package]:
    """All of ``NAMES`` for ``architecture`` (``amd64``, ``arm64``), sorted by name; ``folder`` keeps the downloads.

    Raises ReleaseError where apt has no Debian 12 or can't reach it.
    """
    home = folder / architecture
    (home / "debs").mkdir(parents=True, exist_ok=True)
    options = _apt_options(home, architecture)
    if not list((home / "debs").glob("*.deb")):
        run("apt-get", *options, "-q", "update")
        wanted = [f"{name}:{architecture}" if name not in _all_architectures(options) else name for name in NAMES]
        run("apt-get", *options, "-q", "download", *wanted, folder=home / "debs")
    found = sorted((_read(path) for path in (home / "debs").glob("*.deb")), key=lambda package: package.name)
    missing = set(NAMES) - {package.name for package in found}
    if missing:
        raise ReleaseError(f"{home / 'debs'} lacks {', '.join(sorted(missing))}: remove it and try again")
    return found


def rootfs(packages: list[Package]) -> Tree:
    """What the packages make together, with the certificates in one file and dpkg's records for scanners."""
    made: Tree = {}
    for package in packages:
        for name, entry in package.files.items():
            path = _merged(name)
            if not _LEFT_OUT.match(path + ("/" if entry.kind == tree.FOLDER else "")):
                made[path] = entry
        made[f"var/lib/dpkg/status.d/{package.name}"] = tree.file(package.control)
    made |= {name: tree.link(f"usr/{name}") for name in _MERGED}
    bundle = [made[path].data for path in sorted(made) if path.startswith(_CERTIFICATES) and path.endswith(".crt")]
    made["etc/ssl/certs/ca-certificates.crt"] = tree.file(b"".join(bundle))
    made["usr/lib/ssl/cert.pem"] = tree.link("/etc/ssl/certs/ca-certificates.crt")
    made["usr/lib/ssl/certs"] = tree.link("/etc/ssl/certs")
    return made


def _apt_options(home: Path, architecture: str) -> list[str]:
    for name in ("lists/partial", "cache/archives/partial"):
        (home / name).mkdir(parents=True, exist_ok=True)
    status = home / "status"
    status.touch()
    sandbox = "APT::Sandbox::User=root"
    settings = {
        "Dir::State::lists": home / "lists",
        "Dir::State::status": status,
        "Dir::Cache": home / "cache",
        "APT::Architecture": architecture,
        "Acquire::Languages": "none",
    }
    pairs = [*(f"{key}={value}" for key, value in settings.items()), f"APT::Architectures::={architecture}", sandbox]
    return [word for pair in pairs for word in ("-o", pair)]


def _all_architectures(options: list[str]) -> frozenset[str]:
    """Names of ``NAMES`` that are the same for every architecture."""
    shown = run("apt-cache", *options, "show", "--no-all-versions", *NAMES).decode()
    return frozenset(
        name
        for part in shown.split("\n\n")
        if (name := _field(part, "Package")) and _field(part, "Architecture") == "all"
    )


def _read(path: Path) -> Package:
    control = run("dpkg-deb", "--field", str(path)).decode()
    return Package(
        name=_field(control, "Package"),
        version=_field(control, "Version"),
        architecture=_field(control, "Architecture"),
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        control=control,
        files=tree.from_tar(run("dpkg-deb", "--fsys-tarfile", str(path))),
    )


def _field(control: str, name: str) -> str:
    found = re.search(rf"^{name}: (.*)$", control, re.MULTILINE)
    return found[1].strip() if found else ""


def _merged(path: str) -> str:
    """Where a file lies in a system whose ``/lib`` is a link to ``/usr/lib``."""
    first, slash, _ = path.partition("/")
    return f"usr/{path}" if slash and first in _MERGED else path
