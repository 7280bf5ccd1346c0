"""What a release of this working tree would bring to hosts: the wheel with those it needs, and the image."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from nodewright import __version__
from tests.docs.pages import ROOT

REGISTRY = "lab.example/team"
IMAGE = f"{REGISTRY}/nodewright:{__version__}"
"""Its name; no registry has it, hosts import the archive."""
_MADE = "NODEWRIGHT_IMAGE_TAR"
"""A file that ``python -m hack.release image --registry lab.example/team`` has made; it is taken as it is."""
_PINNED = re.compile(r"^[\w.-]+==[^\\\n]+", re.MULTILINE)
SECONDS = 900


def wheelhouse(folder: Path) -> Path:
    """``folder`` with our wheel and all of its extra `ssh`; the registry is asked for what is in the lock alone."""
    folder.mkdir(parents=True)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT, check=True, capture_output=True, timeout=SECONDS,
    )  # fmt: skip
    [wheel] = folder.glob("*.whl")
    pinned = folder / "pinned.txt"
    pinned.write_text("\n".join(_PINNED.findall((ROOT / "requirements-runtime.lock").read_text())) + "\n")
    download = ["download", "--quiet", "--only-binary=:all:", "--dest", str(folder), "--constraint", str(pinned)]
    tool = folder / "tool"
    subprocess.run([sys.executable, "-m", "venv", str(tool)], check=True, timeout=SECONDS)
    done = subprocess.run(
        [tool / "bin" / "pip", *download, f"{wheel}[ssh]"], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


def image_archive(folder: Path) -> Path:
    """The image by the name of ``IMAGE`` as an OCI archive, made without a daemon, unless one is named.

    Making it takes Debian's packages from its mirrors once and keeps them in ``build/debian``.
    """
    if made := os.environ.get(_MADE):
        return Path(made)
    archive = folder / "nodewright.tar"
    command = [sys.executable, "-m", "hack.release", "image", "--registry", REGISTRY, "--out", str(archive)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return archive
