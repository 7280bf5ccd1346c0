"""The objects of a text that is to be applied, of whatever kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodewright.cli.exits import CliError
from nodewright.cli.manifests.checks import subjects
from nodewright.cli.manifests.documents import Broken, read

DEFAULT_NAMESPACE = "default"


def objects_in(name: str, text: str) -> list[dict[str, Any]]:
    """The objects of one file, with no check but that each has apiVersion, kind and name. Raises CliError."""
    found = []
    for part in read(text):
        if isinstance(part, Broken):
            raise CliError(f"{name}:{part.position.line}: {part.message}", "Correct the file and run again")
        for subject in subjects(part.data):
            data = subject.data
            if not (isinstance(data.get("apiVersion"), str) and subject.kind and name_of(data)):
                line = part.positions[()].line if () in part.positions else 1
                raise CliError(f"{name}:{line}: an object needs apiVersion, kind and metadata.name")
            found.append(dict(data))
    return found


def name_of(obj: Mapping[str, Any]) -> str:
    meta = obj.get("metadata")
    return str(meta.get("name") or "") if isinstance(meta, Mapping) else ""
