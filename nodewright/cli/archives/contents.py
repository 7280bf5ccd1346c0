"""What is in an archive, and how it lies in its file: compressed JSON with a version, sealed as a whole."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from nodewright import __version__
from nodewright.apiserver.app.private_files import write_private
from nodewright.apiserver.store import JournalEntry
from nodewright.cli.archives.keys import Keys, seal, unseal
from nodewright.cli.exits import CliError
from nodewright.cli.versions import is_newer

FORMAT = 1
MOVE, BACKUP = "move", "backup"
"""Purposes: an archive of one is no archive of the other."""
_MOST_BYTES = 1024**3
"""Of what a file unfolds to: whoever knows a public key can write an archive that takes all memory."""


@dataclass(frozen=True, slots=True)
class Contents:
    """``revision``: the last resourceVersion. ``files``: by name, of a backup. ``about``: texts for people."""

    purpose: str
    revision: int
    entries: tuple[JournalEntry, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)
    version: str = __version__
    made: str = ""

    def written(self) -> bytes:
        """To be sealed."""
        objects = [
            [e.collection, e.namespace, e.name, e.revision, (e.body or orjson.dumps(e.obj)).decode()]
            for e in self.entries
        ]
        return zlib.compress(
            orjson.dumps(
                {
                    "format": FORMAT,
                    "purpose": self.purpose,
                    "nodewright": __version__,
                    "made": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                    "about": dict(self.about),
                    "revision": self.revision,
                    "files": {name: base64.b64encode(content).decode() for name, content in self.files.items()},
                    "objects": objects,
                }
            ),
            level=1,
        )


def save(path: Path, contents: Contents, keys: Keys) -> None:
    """All of it or nothing, mode 0600, on the disk when this returns. Raises CliError."""
    try:
        write_private(path, seal(contents.written(), keys))
    except OSError as error:
        raise CliError(
            f"{path} can't be written: {error.strerror or error}", "Make room, or name another one"
        ) from error


def load(path: Path, keys: Keys, purpose: str) -> Contents:
    """Raises CliError for what is no archive of that purpose, damaged, or of a later version of this program."""
    try:
        sealed = path.read_bytes()
    except OSError as error:
        raise CliError(f"{path}: {error.strerror or error}") from error
    return read(unseal(sealed, keys, str(path)), purpose, str(path))


def read(content: bytes, purpose: str, title: str) -> Contents:
    """As ``load``, of what was unsealed."""
    foreign = CliError(f"{title} is encrypted, but no archive of Nodewright", "Name another file")
    try:
        unfolding = zlib.decompressobj()
        found = orjson.loads(unfolding.decompress(content, _MOST_BYTES))
        if not unfolding.eof or not isinstance(found, dict):
            raise foreign
        _check(found, purpose, title)
        return _contents(found)
    except (zlib.error, binascii.Error, LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise foreign from error


def _check(found: dict[str, Any], purpose: str, title: str) -> None:
    version = str(found["nodewright"])
    if type(found["format"]) is not int or found["format"] > FORMAT or is_newer(version, __version__):
        text = f"{title} was written by Nodewright {version}, and this is {__version__}"
        raise CliError(text, f"Use Nodewright {version} or a later one")
    if found["purpose"] != purpose:
        command = "nodewright move --from-directory" if found["purpose"] == MOVE else "nodewright restore"
        raise CliError(f"{title} is an archive for `{command}`", "Name another file, or use that command")


def _contents(found: dict[str, Any]) -> Contents:
    entries = []
    for collection, namespace, name, revision, text in found["objects"]:
        body = str(text).encode()
        obj = orjson.loads(body)
        meta = obj["metadata"]
        if (meta.get("namespace", ""), meta["name"]) != (namespace, name) or not meta["uid"]:
            raise ValueError("an object lies under another name")
        entries.append(JournalEntry(str(collection), namespace, name, int(revision), obj, body))
    return Contents(
        str(found["purpose"]),
        int(found["revision"]),
        tuple(entries),
        {str(name): base64.b64decode(text, validate=True) for name, text in found["files"].items()},
        {str(name): str(text) for name, text in found["about"].items()},
        str(found["nodewright"]),
        str(found["made"]),
    )
