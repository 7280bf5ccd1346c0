"""The fields that not-yet.md says nothing acts on are those that no controller names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nodewright.crds import load_crds

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "not-yet.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (Cluster|Machine) \| `([^`]+)` \|$", PAGE, re.MULTILINE)
UNUSED = (
    ("Machine", "status.providerStatus", ("controllers/machine", "controllers/machineset", "nodewright/runtime")),
)
"""Fields whose names occur nowhere below these folders, which are those that have to do with the kind."""


def has_field(kind: str, path: str) -> bool:
    crd = next(each for each in load_crds() if each["spec"]["names"]["kind"] == kind)
    node = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for name in path.split("."):
        node = node.get("properties", {}).get(name)
        if node is None:
            return False
    return True


@pytest.mark.parametrize(("kind", "path"), ROWS)
def test_each_field_that_is_named_is_there(kind: str, path: str) -> None:
    assert has_field(kind, path)


@pytest.mark.parametrize(("kind", "path", "folders"), UNUSED)
def test_a_field_is_named_as_long_as_nothing_reads_or_writes_it(kind: str, path: str, folders: tuple[str, ...]) -> None:
    name = f'"{path.rpartition(".")[2]}"'
    sources = (file.read_text(encoding="utf-8") for folder in folders for file in (ROOT / folder).rglob("*.py"))
    used = any(name in source for source in sources)
    assert ((kind, path) in ROWS) != used, "take the row out of docs/not-yet.md once the field works"


def test_the_version_of_the_control_plane_is_read_and_never_reported() -> None:
    assert ("Machine", "status.versions.controlPlane") in ROWS
    status = (ROOT / "controllers" / "machine" / "status.py").read_text(encoding="utf-8")
    assert "controlPlane" not in status
