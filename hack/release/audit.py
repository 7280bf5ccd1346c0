"""The lock against a database of advisories that lies in a folder: OSV's export, one JSON file for each advisory.

python -m hack.release audit FOLDER        # FOLDER: OSV's `PyPI/all.zip`, unpacked
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from hack.release.parts import ReleaseError

_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


def findings(lock: str, database: Path) -> list[str]:
    """A line for each advisory that a pin of ``lock`` is affected by, sorted. Raises ReleaseError without any."""
    files = sorted(database.rglob("*.json"))
    if not files:
        raise ReleaseError(f"{database} has no advisories: unpack OSV's export of PyPI there")
    pins = {_normal(name): version for name, version in _PIN.findall(lock)}
    return sorted({line for file in files for line in _of(json.loads(file.read_text(encoding="utf-8")), pins)})


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
