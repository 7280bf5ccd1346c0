"""Folders that come with the program and are used without its repository: manifests and examples."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent


def shared_folder(name: str) -> Path:
    """The folder ``deploy`` or ``examples``: inside the package when it came as a wheel, else in the repository."""
    carried = _HERE / "share" / name
    return carried if carried.is_dir() else _HERE.parent / name
