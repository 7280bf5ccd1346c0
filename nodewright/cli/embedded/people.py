"""Who has access to the control plane of a data folder, changed by one process at a time, running or not."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from api.durations import format_time
from nodewright.apiserver.app.kubeconfig import write_token_kubeconfig
from nodewright.apiserver.app.users import MOST, USERS_FILE, Person, UsersError, new_person, read, write
from nodewright.apiserver.roles import Role
from nodewright.cli.embedded.folder import remembered_port
from nodewright.cli.exits import USAGE, CliError

FOR_EVER = timedelta()
_LOCK = "users.lock"


def people(folder: Path) -> tuple[Person, ...]:
    """By name. Raises CliError."""
    try:
        return read(folder / USERS_FILE)
    except UsersError as error:
        raise CliError(str(error), "Restore the file, or remove it and add everybody anew") from error
    except OSError as error:
        raise CliError(f"{folder}: {error.strerror}") from error


def _port_of(folder: Path) -> int:
    port = remembered_port(folder)
    if not port or not (folder / "ca.crt").exists():
        raise CliError(f"{folder} holds no control plane that was ever started", "Start it once: `nodewright up`")
    return port


def add(folder: Path, name: str, role: Role, kubeconfig: Path, lifetime: timedelta = FOR_EVER) -> None:
    """The kubeconfig is written first: a token that nobody knows must not be left. Raises CliError."""
    port = _port_of(folder)
    if kubeconfig.exists() or kubeconfig.is_symlink():
        raise CliError(f"{kubeconfig} exists: it would be overwritten", "Choose another --kubeconfig")
    try:
        now = datetime.now(UTC)
        person, token = new_person(name, role, format_time(now), _end_after(lifetime, now))
    except UsersError as error:
        raise CliError(str(error), code=USAGE) from error
    with _changing(folder):
        known = people(folder)
        if any(each.name == name for each in known):
            hint = f"`nodewright users renew {name}` extends the token; for a new one `users remove {name}` first"
            raise CliError(f"{name} has access already", hint)
        if len(known) >= MOST:
            raise CliError(f"{MOST} people have access already", "Remove some")
        write_token_kubeconfig(kubeconfig, f"https://127.0.0.1:{port}", folder / "ca.crt", (name, token))
        write(folder / USERS_FILE, (*known, person))


def remove(folder: Path, name: str) -> None:
    """Raises CliError."""
    with _changing(folder):
        _, left = _without(folder, name)
        write(folder / USERS_FILE, left)


def renew(folder: Path, name: str, lifetime: timedelta) -> Person:
    """The same token ends ``lifetime`` from now, even if it has expired. Raises CliError."""
    with _changing(folder):
        person, others = _without(folder, name)
        renewed = replace(person, until=_end_after(lifetime, datetime.now(UTC)))
        write(folder / USERS_FILE, (*others, renewed))
    return renewed


def _end_after(lifetime: timedelta, now: datetime) -> str:
    """RFC 3339; "" for ``FOR_EVER``."""
    return format_time(now + lifetime) if lifetime else ""


def _without(folder: Path, name: str) -> tuple[Person, tuple[Person, ...]]:
    known = people(folder)
    found = next((each for each in known if each.name == name), None)
    if found is None:
        raise CliError(f"{name} has no access", "`nodewright users list` shows who has")
    return found, tuple(each for each in known if each is not found)


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
