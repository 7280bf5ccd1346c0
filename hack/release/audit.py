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
    for affected in advisory.get("affected", ()):
        package = affected.get("package", {})
        name = _normal(str(package.get("name", "")))
        if package.get("ecosystem") == "PyPI" and name in pins and is_affected(affected, pins[name]):
            yield f"{name} {pins[name]}: {advisory['id']}: {advisory.get('summary', '')}".rstrip(": ")


def is_affected(affected: dict[str, Any], version: str) -> bool:
    """By OSV's schema: listed in ``versions``, or within a range. What can't be compared counts as affected."""
    if version in affected.get("versions", ()):
        return True
    return any(
        _in_range(r.get("events", ()), version) for r in affected.get("ranges", ()) if r.get("type") == "ECOSYSTEM"
    )


def _in_range(events: Any, version: str) -> bool:
    """introduced 1.0, fixed 1.4: 1.0 to 1.3.9 are affected. last_affected 1.4: 1.4 is, 1.4.1 is not."""
    inside = False
    try:
        mine = Version(version)
        for event in events:
            if "introduced" in event and (event["introduced"] == "0" or mine >= Version(event["introduced"])):
                inside = True
            if "fixed" in event and mine >= Version(event["fixed"]):
                inside = False
            if "last_affected" in event and mine > Version(event["last_affected"]):
                inside = False
    except InvalidVersion:
        return True
    return inside


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
