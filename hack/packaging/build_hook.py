"""The wheel: all of it below ``nodewright``, so that nobody else's ``api`` or ``providers`` is in its way (ADR 0039).

In the repository four packages stand side by side. A wheel that installed them so would share the names ``api``,
``controllers`` and ``providers`` with every other wheel and folder on the path. So the build writes a copy with the
three of them inside ``nodewright`` and their imports named accordingly. An editable install has the repository itself.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))
from moving_in import FOLDER_OF_SHARE, MOVED, SHARE, moved_in

SHARED = ("deploy", "examples")
"""What is used without the repository: `nodewright install --controllers` and the pages name it."""


class Hook(BuildHookInterface):  # type: ignore[type-arg]
    """Called by hatchling."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raises ValueError for an import that can't be named anew."""
        if version == "editable":
            return
        self._share(build_data)
        if self.target_name != "wheel":
            return
        self._folder = Path(tempfile.mkdtemp(prefix="nodewright-wheel-"))
        root = Path(self.root)
        write_package(root, self._folder / "nodewright")
        build_data["force_include"][str(self._folder / "nodewright")] = "nodewright"

    def _share(self, build_data: dict[str, Any]) -> None:
        folder = Path(os.environ.get(FOLDER_OF_SHARE) or Path(self.root) / SHARE)
        data = build_data["shared_data" if self.target_name == "wheel" else "force_include"]
        for path in sorted(folder.rglob("*")):  # each file by itself: of folders `exclude` leaves out all
            if path.is_file():
                data[str(path)] = f"{SHARE}/{path.relative_to(folder).as_posix()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable" and self.target_name == "wheel":
            shutil.rmtree(self._folder, ignore_errors=True)


def write_package(root: Path, target: Path) -> None:
    """Write the package ``nodewright`` with all that goes into the wheel to ``target``, which is not there yet."""
    leave_out = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(root / "nodewright", target, ignore=leave_out)
    for name in MOVED:
        shutil.copytree(root / name, target / name, ignore=leave_out)
    for name in SHARED:
        shutil.copytree(root / name, target / "share" / name, ignore=leave_out)
    for path in sorted(target.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        path.write_text(moved_in(text, str(path.relative_to(target))), encoding="utf-8")
