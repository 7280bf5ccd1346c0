"""The lock against a database of advisories: OSV's export, one JSON document for each advisory.

python -m hack.release audit DATABASE      # OSV's `PyPI/all.zip`, a folder with what is in it, or one JSON file
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from hack.release.parts import ReleaseError

_COMPARED = ("ECOSYSTEM", "SEMVER")
_TURNS = ("introduced", "fixed", "last_affected")
_LONGEST = 120
"""Characters of the details, where an advisory has no summary: those of PyPA have none."""
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


def findings(lock: str, database: Path) -> list[str]:
    """A line for each advisory that a pin of ``lock`` is affected by, sorted.

    Raises ReleaseError if ``database`` has no advisories, or one that can't be read: an audit that skips is none.
    """
    pins = {_normal(name): version for name, version in _PIN.findall(lock)}
    lines: set[str] = set()
    read = 0
    for where, text in _documents(database):
        try:
            document = json.loads(text)
            for advisory in document if isinstance(document, list) else [document]:
                lines.update(_of(advisory, pins))
                read += 1
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise ReleaseError(f"{where} is no advisory in OSV's format: {type(error).__name__}: {error}") from None
    if not read:
        raise ReleaseError(f"{database} has no advisories: give OSV's export of PyPI, as a zip or unpacked")
    return sorted(lines)


def _documents(database: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of each JSON file of a folder or a zip, or of the one file that ``database`` is."""
    if zipfile.is_zipfile(database):
        with zipfile.ZipFile(database) as archive:
            for name in sorted(archive.namelist()):
                if name.endswith(".json"):
                    yield f"{database}:{name}", archive.read(name)
        return
    files = [database] if database.is_file() else sorted(database.rglob("*.json"))
    for file in files:
        yield str(file), file.read_bytes()


def _of(advisory: dict[str, Any], pins: dict[str, str]) -> Iterator[str]:
    if advisory.get("withdrawn"):
        return
    for affected in advisory.get("affected") or ():  # null is as good as none by the schema
        package = affected.get("package") or {}
        name = _normal(str(package.get("name", "")))
        if package.get("ecosystem") == "PyPI" and name in pins and is_affected(affected, pins[name]):
            told = advisory.get("summary") or " ".join(str(advisory.get("details") or "").split())[:_LONGEST]
            yield f"{name} {pins[name]}: {advisory['id']}: {told}".rstrip(": ")


def is_affected(affected: dict[str, Any], version: str) -> bool:
    """By the evaluation of OSV's schema: listed in ``versions``, or within a range. GIT ranges are of commits.

    What can't be compared counts as affected.
    """
    if any(_same(each, version) for each in affected.get("versions") or ()):
        return True
    ranges = [r for r in affected.get("ranges") or () if r["type"] in _COMPARED]
    return any(_in_range(r["events"], version) for r in ranges)


def _same(listed: str, version: str) -> bool:
    """1.0 and 1.0.0 are one version."""
    try:
        return listed == version or Version(listed) == Version(version)
    except InvalidVersion:
        return False


def _in_range(events: list[dict[str, str]], version: str) -> bool:
    """introduced 1.0, fixed 1.4: 1.0 to 1.3.9 are affected. last_affected 1.4: 1.4 is, 1.4.1 is not. limit 2.0: nothing
    from 2.0 on is affected by this range. The order of events says nothing.
    """
    try:
        mine = Version(version)
        limits = [event["limit"] for event in events if "limit" in event]
        if limits and not any(limit == "*" or mine < Version(limit) for limit in limits):
            return False
        inside = False
        for at, kind in sorted((_at(event[kind]), kind) for event in events for kind in _TURNS if kind in event):
            if kind == "introduced" and mine >= at:
                inside = True
            elif (kind == "fixed" and mine >= at) or (kind == "last_affected" and mine > at):
                inside = False
    except InvalidVersion:
        return True
    return inside


def _at(text: str) -> Version:
    """ "0" is before every version."""
    return Version("0.dev0") if text == "0" else Version(text)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
