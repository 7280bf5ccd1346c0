"""Programs of Kubernetes that are built with Go: minutes of CPU each, so by one process at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hack import binaries


def test_of_many_that_ask_at_once_one_builds_and_the_others_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = []

    def build(name: str, tools: Path) -> Path:
        target = binaries.cache_folder(tools) / name
        built.append(name)
        target.write_text("#!/bin/sh\n")
        target.chmod(0o755)
        return target

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setattr(binaries, "build", build)
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(binaries.ensure, ["etcd"] * 8))
    assert built == ["etcd"]
    assert found == {binaries.cache_folder() / "etcd"}
