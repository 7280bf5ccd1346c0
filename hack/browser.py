"""A real browser for the tests of the web view: Debian's Chromium. ``python -m hack.browser`` installs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

REMEDY = "run `make browser` as root on Debian or Ubuntu, or name one in CHROMIUM"
_PLACES = ("/usr/lib/chromium/chromium", "/usr/bin/chromium", "/usr/bin/chromium-browser")
"""The program itself stands before the shell script that starts it with a desktop's flags."""

_PACKAGES = ("chromium", "fonts-dejavu-core")


def find() -> Path | None:
    """The Chromium to use; None: there is none."""
    for place in (os.environ.get("CHROMIUM", ""), *_PLACES):
        if place and os.access(place, os.X_OK):
            return Path(place)
    return None


def install() -> Path:
    """Install it where it is missing. Raises SystemExit with what to do."""
    found = find()
    if found is not None:
        return found
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise SystemExit(f"Chromium not found: {REMEDY}")
    variables = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ("update", "-q"),
        ("install", "-q", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core"),
    ):
        subprocess.run(("apt-get", *command), check=True, env=variables, stdout=subprocess.DEVNULL)
    found = find()
    if found is None:
        raise SystemExit(f"Chromium was installed and is not found: {REMEDY}")
    return found


if __name__ == "__main__":
    print(install())
    sys.exit(0)
