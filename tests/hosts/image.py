"""The image of a release for tests on real hosts: the one that is named, or made once of this tree."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nodewright import __version__
from tests.docs.pages import ROOT

NAMED = "NODEWRIGHT_IMAGE_TAR"
"""A file that ``python -m hack.release image --registry lab.example/team`` has made; it is taken as it is."""
REGISTRY = "lab.example/team"
NAME = f"{REGISTRY}/nodewright:{__version__}"
"""What hosts call it once they have imported it."""
_SECONDS = 900


@pytest.fixture(scope="session")
def image_tar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An OCI archive. Making it takes Debian's packages from its mirrors once and keeps them in ``build/debian``."""
    named = os.environ.get(NAMED, "")
    if named:
        return Path(named)
    out = tmp_path_factory.mktemp("image") / "nodewright.tar"
    command = [sys.executable, "-m", "hack.release", "image", f"--registry={REGISTRY}", f"--out={out}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return out
