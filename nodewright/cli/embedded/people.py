"""Who has access to the control plane of a data folder, changed by one process at a time, running or not."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from nodewright.apiserver.app.kubeconfig import write_token_kubeconfig
from nodewright.apiserver.app.users import MOST, USERS_FILE, Person, UsersError, new_person, read, write
from nodewright.apiserver.roles import Role
from nodewright.cli.embedded.folder import remembered_port
from nodewright.cli.exits import USAGE, CliError

_LOCK = "users.lock"


def people(folder: Path) -> tuple[Person, ...]:
    """By name. Raises CliError."""
    try:
        return read(folder / USERS_FILE)
    except UsersError as error:
        raise CliError(str(error), "Restore the file, or remove it and add everybody anew") from error
    except OSError as error:
        raise CliError(f"{folder}: {error.strerror}") from error


def add(folder: Path, name: str, role: Role, kubeconfig: Path) -> None:
    """The kubeconfig is written first: a token that nobody knows must not be left. Raises CliError."""
    port = remembered_port(folder)
    if not port or not (folder / "ca.crt").exists():
        raise CliError(f"{folder} holds no control plane that was ever started", "Start it once: `nodewright up`")
    if kubeconfig.exists() or kubeconfig.is_symlink():
        raise CliError(f"{kubeconfig} exists: it would be overwritten", "Choose another --kubeconfig")
    try:
        person, token = new_person(name, role, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    except UsersError as error:
        raise CliError(str(error), code=USAGE) from error
    with _changing(folder):
        known = people(folder)
        if any(each.name == name for each in known):
            raise CliError(f"{name} has access already", f"For a new token: `nodewright users remove {name}` first")
        if len(known) >= MOST:
            raise CliError(f"{MOST} people have access already", "Remove some")
        write_token_kubeconfig(kubeconfig, f"https://127.0.0.1:{port}", folder / "ca.crt", (name, token))
        write(folder / USERS_FILE, (*known, person))


def remove(folder: Path, name: str) -> None:
    """Raises CliError."""
    with _changing(folder):
        known = people(folder)
        left = tuple(each for each in known if each.name != name)
        if len(left) == len(known):
            raise CliError(f"{name} has no access", "`nodewright users list` shows who has")
        write(folder / USERS_FILE, left)


@contextmanager
def _changing(folder: Path) -> Iterator[None]:
    try:
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CliError(f"{folder}: {error.strerror}", "Name the folder of `nodewright up` with --data-dir") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    except OSError as error:
        raise CliError(f"{folder} can't be written: {error.strerror or error}") from error
    finally:
        os.close(descriptor)
