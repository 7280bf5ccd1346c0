"""Find the stock kubectl, or build it as a pinned Go module: ``python -m hack.kubectl`` prints its path.

Order: ``$KUBECTL``, then PATH, then the cache of ``hack.binaries``, then a build of ``hack/tools`` with Go. Where none
of that is possible it says how to get one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from hack import binaries

HOW_TO_GET_IT = (
    "kubectl is missing. Install your distribution's package (Debian, Ubuntu, Fedora: kubernetes-client; "
    "Homebrew: kubernetes-cli), put a kubectl on PATH or name one in $KUBECTL, "
    "or install Go 1.26+ and run `make kubectl`, which builds the pinned version."
)


class NoKubectl(Exception):
    """There is no kubectl; the message says how to get one."""


def find() -> Path | None:
    """The kubectl to use, without building anything; None if there is none.

    Raises NoKubectl if $KUBECTL names something that can't be run: a wrong choice is not ignored.
    """
    named = os.environ.get("KUBECTL")
    if named:
        path = shutil.which(named)
        if path is None:
            raise NoKubectl(f"$KUBECTL names {named}, which can't be run. Correct or unset it.")
        return Path(path)
    on_path = shutil.which("kubectl")
    return Path(on_path) if on_path else binaries.find("kubectl")


def build() -> Path:
    """Build the pinned kubectl into the cache (minutes, once). Raises NoKubectl without Go or if the build fails."""
    try:
        return binaries.build("kubectl")
    except binaries.BinaryMissing as missing:
        raise NoKubectl(f"{HOW_TO_GET_IT}\n{missing}") from missing


def require() -> Path:
    """The kubectl to use; built first if need be. Raises NoKubectl."""
    return find() or build()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m hack.kubectl", description="Find or build kubectl, print its path."
    )
    parser.add_argument("--build", action="store_true", help="build the pinned version even if there is a kubectl")
    parser.add_argument("--no-build", action="store_true", help="only look")
    options = parser.parse_args(arguments)
    try:
        path = build() if options.build else find() if options.no_build else require()
        if path is None:
            raise NoKubectl(HOW_TO_GET_IT)
    except NoKubectl as error:
        print(f"hack.kubectl: {error}", file=sys.stderr)
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
