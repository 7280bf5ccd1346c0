"""A program of the ecosystem that is found, or built as a pinned Go module: ``python -m hack.pinned helm`` prints its
path.

Looked for in this order: its variable (``$HELM``, ``$KREW``), PATH, the cache folder, and then a build with Go, which
takes minutes once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from hack import golang
from hack.binaries import TOOLS, BinaryMissing, cache_folder


@dataclass(frozen=True, slots=True)
class Pinned:
    """``on_path``: its name there. ``package``: of the module in ``hack/tools/<module>``; "" is one of its own name."""

    name: str
    on_path: str
    package: str
    module: str = ""

    def find(self) -> Path | None:
        """Never builds. Raises BinaryMissing for a variable that names no program."""
        variable = self.name.upper()
        named = os.environ.get(variable)
        if named:
            path = shutil.which(named)
            if path is None:
                raise BinaryMissing(f"{variable}: {named} is no program")
            return Path(path)
        found = shutil.which(self.on_path)
        return Path(found) if found else self._built if os.access(self._built, os.X_OK) else None

    def ensure(self) -> Path:
        """As ``find``, building it where it is missing. Raises BinaryMissing."""
        return self.find() or self.build()

    def build(self) -> Path:
        target = self._built
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_suffix(f".{os.getpid()}")
        golang.build(self._sources, partial, self.package)
        partial.replace(target)
        return target

    @property
    def _sources(self) -> Path:
        return TOOLS / (self.module or self.name)

    @property
    def _built(self) -> Path:
        digest = hashlib.sha256((self._sources / "go.sum").read_bytes()).hexdigest()[:12]
        return cache_folder().parent / f"{self.name}-{digest}"


HELM = Pinned("helm", "helm", "helm.sh/helm/v3/cmd/helm")
KREW = Pinned("krew", "kubectl-krew", "sigs.k8s.io/krew/cmd/krew")
FULCIO = Pinned("fulcio", "fulcio", "github.com/sigstore/fulcio", "sigstore")
TESSERACT = Pinned("tesseract", "tesseract", "github.com/transparency-dev/tesseract/cmd/tesseract/posix", "sigstore")
REKOR = Pinned("rekor", "rekor-server", "github.com/sigstore/rekor-tiles/v2/cmd/rekor-server/posix", "sigstore")
TSA = Pinned("tsa", "timestamp-server", "github.com/sigstore/timestamp-authority/v2/cmd/timestamp-server", "sigstore")
SIGSTORE = (FULCIO, TESSERACT, REKOR, TSA)


def main(names: list[str]) -> int:
    programs = {each.name: each for each in (HELM, KREW, *SIGSTORE)}
    try:
        for name in names:
            print(programs[name].ensure())
    except BinaryMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
