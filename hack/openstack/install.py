"""Finds or installs the parts of the cloud: OpenStack into an environment of its own, MariaDB from the distribution.

The environment lies in the cache, named by the digest of ``requirements.lock`` (``make openstack-lock`` writes it), so
that another version never mixes with this one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

LOCK = Path(__file__).parent / "requirements.lock"
DATABASE = ("mariadbd", "mariadb-install-db", "my_print_defaults")
DATABASE_PACKAGES = ("mariadb-server-core", "mariadb-client-core")
"""Debian's. ``mariadb-install-db`` runs ``my_print_defaults``, which is in the second; nothing else pulls that in."""
REMEDY = (
    "run `make openstack` once (needs uv, which `make setup` brings, and "
    f"`apt-get install {' '.join(DATABASE_PACKAGES)}`)"
)

Say = Callable[[str], None]


class PartMissing(Exception):
    """A part is neither there nor can it be installed; the message says what to do."""


def missing() -> str:
    """One line that says what is not there yet and how to get it; "" if all is."""
    lacking = [name for name in DATABASE if which(name) is None]
    if not _is_complete(environment()):
        lacking.insert(0, "OpenStack")
    return f"{', '.join(lacking)} not found: {REMEDY}" if lacking else ""


def environment() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "nodewright" / "openstack" / hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12] / "venv"


def which(name: str) -> Path | None:
    """A program; those of a database server often lie where a person's PATH does not lead."""
    found = shutil.which(
        name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
    )
    return Path(found) if found else None


def ensure(say: Say) -> Path:
    """The environment, installed if need be. Raises PartMissing."""
    if any(which(name) is None for name in DATABASE):
        _install_database(say)
    venv = environment()
    if not _is_complete(venv):
        _install_openstack(venv, say)
    return venv


def _is_complete(venv: Path) -> bool:
    return (venv / ".complete").is_file()


def _install_openstack(venv: Path, say: Say) -> None:
    uv = shutil.which("uv") or (str(own) if (own := Path("build/uv/bin/uv").absolute()).is_file() else "")
    if not uv:
        raise PartMissing(f"uv is missing: {REMEDY}")
    say("installing OpenStack (some 370 MB, once)")
    _run([uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(venv)])
    python = str(venv / "bin" / "python")
    _run([uv, "pip", "sync", "--quiet", "--python", python, "--require-hashes", str(LOCK)])
    (venv / ".complete").touch()


def _install_database(say: Say) -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise PartMissing(f"MariaDB is missing, and only root can install it: {REMEDY}")
    say("installing MariaDB")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    _run(["apt-get", "update", "-q"], quiet)
    _run(["apt-get", "install", "-q", "-y", "--no-install-recommends", *DATABASE_PACKAGES], quiet)


def _run(command: list[str], variables: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    if done.returncode:
        raise PartMissing(f"`{' '.join(command[:3])} …` failed:\n{(done.stdout + done.stderr)[-2000:]}")
