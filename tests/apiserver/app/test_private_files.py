"""A file that is replaced is the old one or the new one after a power cut, too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nodewright.apiserver.app.private_files import write_private


def test_content_goes_down_before_the_name_and_the_name_before_it_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def forced(descriptor: int) -> None:
        steps.append("folder" if os.path.samestat(os.fstat(descriptor), os.stat(tmp_path)) else "content")
        fsync(descriptor)

    def renamed(path: Path, target: Path) -> Path:
        steps.append("rename")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", forced)
    monkeypatch.setattr(Path, "replace", renamed)
    write_private(tmp_path / "a", b"x")
    assert steps == ["content", "rename", "folder"]
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
