"""Which version is released, and what its notes say."""

from __future__ import annotations

import re
from pathlib import Path

from hack.release.parts import ROOT, ReleaseError, run
from nodewright import __version__

_SECTION = re.compile(r"^## +(?:\[)?v?([^\]\s]+)(?:\])?.*$", re.MULTILINE)


def released(folder: Path = ROOT) -> str:
    """The version of the tag ``vX.Y.Z`` at this commit, or the program's own version where there is no such tag.

    Raises ReleaseError where the tag and the program name two versions.
    """
    tags = [tag for tag in run("git", "tag", "--points-at", "HEAD", folder=folder).decode().split() if tag[:1] == "v"]
    if tags and f"v{__version__}" not in tags:
        raise ReleaseError(
            f"the tag is {tags[0]}, and nodewright/__init__.py says {__version__}: they must be the same"
        )
    return __version__


def is_tagged(folder: Path = ROOT) -> bool:
    return f"v{__version__}" in run("git", "tag", "--points-at", "HEAD", folder=folder).decode().split()


def notes(changelog: str, version: str, *, tagged: bool) -> str:
    """The section of ``version``, of ``Unreleased`` without a tag. Raises ReleaseError if it is missing or empty."""
    wanted = version if tagged else "Unreleased"
    parts = _SECTION.split(changelog)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    text = sections.get(wanted, "").strip()
    if not text:
        raise ReleaseError(f"CHANGELOG.md has no section `## {wanted}` with text in it")
    return f"# Nodewright {version}{'' if tagged else ' (not released)'}\n\n{text}\n"
