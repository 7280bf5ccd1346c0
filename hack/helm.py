"""Finds helm, or builds it as a pinned Go module of ``hack/tools/helm``: ``python -m hack.helm`` prints its path.

Looked for in this order: ``$HELM``, PATH, the cache folder, and then a build with Go, which takes minutes once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

from hack import golang
from hack.binaries import TOOLS, BinaryMissing, cache_folder

SOURCES = TOOLS / "helm"
PACKAGE = "helm.sh/helm/v3/cmd/helm"


def find() -> Path | None:
    """Never builds. Raises BinaryMissing for a wrong ``$HELM``."""
    named = os.environ.get("HELM")
    if named:
        path = shutil.which(named)
        if path is None:
            raise BinaryMissing(f"HELM: {named} is no program")
        return Path(path)
    found = shutil.which("helm")
    return Path(found) if found else _built() if os.access(_built(), os.X_OK) else None


def ensure() -> Path:
    """As ``find``, building it where it is missing. Raises BinaryMissing."""
    return find() or build()


def build() -> Path:
    target = _built()
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(f".{os.getpid()}")
    golang.build(SOURCES, partial, PACKAGE)
    partial.replace(target)
    return target


def _built() -> Path:
    digest = hashlib.sha256((SOURCES / "go.sum").read_bytes()).hexdigest()[:12]
    return cache_folder().parent / f"helm-{digest}"


def main() -> int:
    try:
        print(ensure())
    except BinaryMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
