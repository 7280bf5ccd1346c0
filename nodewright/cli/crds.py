"""The CustomResourceDefinitions that come with the program."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from nodewright.cli.exits import CliError

_PACKAGE = Path(__file__).resolve().parent.parent
_FOLDERS = (_PACKAGE / "crds", _PACKAGE.parent / "crds")
"""In a wheel, and in a checkout."""


@cache
def definitions() -> tuple[Mapping[str, Any], ...]:
    """All of them, parsed, in the order of their file names. Raises CliError if none is there."""
    folder = next((f for f in _FOLDERS if any(f.glob("*.yaml"))), None)
    if folder is None:
        raise CliError("the CustomResourceDefinitions are missing from this installation", "Install nodewright again")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    texts = (path.read_text() for path in sorted(folder.glob("*.yaml")))
    return tuple(document for text in texts for document in yaml.load_all(text, loader) if document)  # noqa: S506


def find(group: str, version: str, kind: str) -> Mapping[str, Any] | None:
    """The structural schema (openAPIV3Schema) of one of our kinds in one version."""
    for definition in definitions():
        spec = definition["spec"]
        if spec["group"] == group and spec["names"]["kind"] == kind:
            for served in spec["versions"]:
                if served["name"] == version:
                    schema: Mapping[str, Any] = served["schema"]["openAPIV3Schema"]
                    return schema
    return None


def kinds(group: str) -> dict[str, tuple[str, ...]]:
    """Our kinds in ``group`` with their versions."""
    return {
        d["spec"]["names"]["kind"]: tuple(v["name"] for v in d["spec"]["versions"])
        for d in definitions()
        if d["spec"]["group"] == group
    }
