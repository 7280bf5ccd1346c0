"""People who use a plane beside its administrator: names, roles and the hashes of their tokens, in one private file.

A token is 32 random bytes, so that its SHA-256 is as hard to turn round as itself: there is nothing to guess, unlike
with passwords, and no need to make hashing slow.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from nodewright.apiserver.app.private_files import write_private
from nodewright.apiserver.roles import Role

USERS_FILE = "users.json"
MOST = 1000
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.@-]{0,61}[a-z0-9])?").fullmatch
_HASH = re.compile(r"[0-9a-f]{64}").fullmatch
_LOG = logging.getLogger("nodewright.apiserver")


class UsersError(ValueError):
    """The file can't be understood, or a change of it makes no sense. The text says which."""


@dataclass(frozen=True, slots=True)
class Person:
    """``hash``: SHA-256 of the token, hexadecimal. ``since``: RFC 3339."""

    name: str
    role: Role
    hash: str
    since: str


def read(path: Path) -> tuple[Person, ...]:
    """By name. Raises UsersError for a file that is damaged, OSError for one that can't be read."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return ()
    try:
        found = [Person(**{**each, "role": Role(each["role"])}) for each in json.loads(content)["users"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsersError(f"{path} is damaged: {error}") from error
    for person in found:
        if not isinstance(person.name, str) or not _NAME(person.name) or not _HASH(str(person.hash)):
            raise UsersError(f"{path} is damaged: {person.name!r} is no name, or has no hash")
    return tuple(sorted(found, key=lambda person: person.name))


def write(path: Path, people: tuple[Person, ...]) -> None:
    """All of them or none. Raises OSError."""
    write_private(path, json.dumps({"users": [asdict(person) for person in people]}, indent=1).encode() + b"\n")


def new_person(name: str, role: Role, since: str) -> tuple[Person, str]:
    """Somebody with a token, which is nowhere but in the answer. Raises UsersError for a name that is none."""
    if not _NAME(name):
        raise UsersError(f"{name!r} is no name: up to 63 of a-z, 0-9, '.', '@' and '-', a letter or digit at both ends")
    token = secrets.token_urlsafe(32)
    return Person(name, role, _hash(token), since), token


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class Users:
    """The file as a plane reads it: anew whenever it has changed, so that who is removed is out at the next request.

    ``on_loss`` is called when a token has lost something. With a damaged file nobody of it may do anything.
    """

    def __init__(self, path: Path, on_loss: Callable[[], object]) -> None:
        self._path = path
        self._on_loss = on_loss
        self._seen: tuple[int, ...] | None = None
        self._people: tuple[Person, ...] = ()

    def refresh(self) -> None:
        """Look whether the file has changed."""
        try:
            found = self._path.stat()
            seen: tuple[int, ...] = (found.st_mtime_ns, found.st_size, found.st_ino)
        except OSError:
            seen = ()
        if seen == self._seen:
            return
        try:
            people = read(self._path)
        except (UsersError, OSError) as error:
            _LOG.error("nobody but the administrator has access: %s", error)
            people = ()
        lost = {(each.hash, each.role) for each in self._people} - {(each.hash, each.role) for each in people}
        self._seen, self._people = seen, people
        if lost:
            self._on_loss()

    def find(self, token: str) -> Person | None:
        """Whose token it is."""
        self.refresh()
        asked, found = _hash(token), None
        for person in self._people:
            if hmac.compare_digest(person.hash, asked):
                found = person
        return found
