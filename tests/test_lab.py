"""The lab of real hosts says what this machine lacks before it makes any."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hack.hosts.lab import Lab
from hack.hosts.parts import LabError, no_room

GIB = 1 << 30


@pytest.mark.parametrize(("free", "enough"), [(37, False), (38, True)])
def test_a_file_system_needs_room_for_pods(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free: int, enough: bool
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: (252 * GIB, (252 - free) * GIB, free * GIB))
    assert bool(no_room(tmp_path)) is not enough


def test_no_lab_is_made_where_kubelets_would_take_no_pods(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: (252 * GIB, 215 * GIB, 37 * GIB))
    with pytest.raises(LabError, match=r"lab is too full for hosts: 37 of 252 GiB are free.*below 15%"):
        Lab.make(tmp_path / "lab")
    assert list((tmp_path / "lab").iterdir()) == []
