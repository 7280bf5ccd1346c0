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
from datetime import datetime
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
    """``hash``: SHA-256 of the token, hexadecimal. ``since``, ``until``: RFC 3339; the token ends then, "" is never."""

    name: str
    role: Role
    hash: str
    since: str
    until: str = ""

    def has_ended(self, now: datetime) -> bool:
        """Whether the token is good for nothing any more."""
        return bool(self.until) and datetime.fromisoformat(self.until) <= now


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
        if person.until and not _is_time(person.until):
            raise UsersError(f"{path} is damaged: {person.until!r}, the end of {person.name}'s token, is no time")
    return tuple(sorted(found, key=lambda person: person.name))


def write(path: Path, people: tuple[Person, ...]) -> None:
    """All of them or none. Raises OSError."""
    write_private(path, json.dumps({"users": [asdict(person) for person in people]}, indent=1).encode() + b"\n")


def new_person(name: str, role: Role, since: str, until: str = "") -> tuple[Person, str]:
    """Somebody with a token, which is nowhere but in the answer. Raises UsersError for a name that is none."""
    if not _NAME(name):
        raise UsersError(f"{name!r} is no name: up to 63 of a-z, 0-9, '.', '@' and '-', a letter or digit at both ends")
    token = secrets.token_urlsafe(32)
    return Person(name, role, _hash(token), since, until), token


def _is_time(text: object) -> bool:
    try:
        return datetime.fromisoformat(str(text)).tzinfo is not None
    except ValueError:
        return False


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class Users:
    """The file as a plane reads it: anew whenever it has changed, so that who is removed is out at the next request.

    ``on_loss`` is called when a token has lost something, or has ended. With a damaged file nobody of it may do
    anything. A clock that goes back gives no ended token its rights again: the latest time that was seen counts.
    """

    def __init__(self, path: Path, on_loss: Callable[[], object], clock: Callable[[], datetime]) -> None:
        self._path = path
        self._on_loss = on_loss
        self._clock = clock
        self._now = clock()
        self._seen: tuple[int, ...] | None = None
        self._people: tuple[Person, ...] = ()
        self._next_end: datetime | None = None

    def refresh(self) -> None:
        """Look whether the file has changed, or a token has ended."""
        self._now = max(self._now, self._clock())
        if self._next_end is not None and self._next_end <= self._now:
            self._next_end = self._earliest_end()
            self._on_loss()
        seen = self._fingerprint()
        if seen == self._seen:
            return
        try:
            people = read(self._path)
        except (UsersError, OSError) as error:
            _LOG.error("nobody but the administrator has access: %s", error)
            people = ()
        lost = {(each.hash, each.role) for each in self._people} - {(each.hash, each.role) for each in people}
        self._seen, self._people = seen, people
        self._next_end = self._earliest_end()
        if lost:
            self._on_loss()

    def _fingerprint(self) -> tuple[int, ...]:
        """Another one after each change of the file; () if there is none."""
        try:
            found = self._path.stat()
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _earliest_end(self) -> datetime | None:
        """Of the tokens that have not ended: so that a request compares one time, however many people there are."""
        ends = (datetime.fromisoformat(each.until) for each in self._people if each.until)
        return min((end for end in ends if end > self._now), default=None)

    def find(self, token: str) -> Person | None:
        """Whose token it is; None for one that has ended too."""
        self.refresh()
        asked, found = _hash(token), None
        for person in self._people:
            if hmac.compare_digest(person.hash, asked):
                found = person
        return found if found is None or not found.has_ended(self._now) else None
