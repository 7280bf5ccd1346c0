"""A plane in a thread of its own, and where a plane listens."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from nodewright.apiserver.app import APIServer, APIServerConfig
from nodewright.apiserver.app.background import serve_in_background


def test_functions_run_in_the_thread_of_the_plane() -> None:
    before = set(threading.enumerate())
    with serve_in_background(APIServerConfig()) as background:
        assert background.call(lambda _: threading.current_thread().name) == "nodewright-controlplane"
        assert background.call(lambda plane: int(plane.store.resource_version)) > 0
        with pytest.raises(ZeroDivisionError):
            background.call(lambda _: 1 // 0)
    started = set(threading.enumerate()) - before
    assert "nodewright-controlplane" not in {thread.name for thread in started}


def test_a_start_that_fails_fails_for_the_caller(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"), serve_in_background(APIServerConfig(data_dir=tmp_path / "file")):
        pass


async def test_a_plane_in_memory_leaves_nothing_behind() -> None:
    async with APIServer(APIServerConfig()) as plane:
        folder = plane.ca_path.parent
        assert folder.is_dir()
        assert plane.kubeconfig_path.parent == folder
    assert not folder.exists()


async def test_another_host_must_be_asked_for(tmp_path: Path) -> None:
    async with APIServer(APIServerConfig(host="localhost", kubeconfig=tmp_path / "kubeconfig")) as plane:
        assert plane.url.startswith("https://localhost:")
        assert plane.kubeconfig_path.is_file()
    with pytest.raises(OSError, match=r"192\.0\.2\.1"):
        async with APIServer(APIServerConfig(host="192.0.2.1")):
            pass


async def test_a_bad_custom_kind_stops_the_start_with_its_name() -> None:
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "bad"}}
    with pytest.raises(ValueError, match="bad"):
        async with APIServer(APIServerConfig(crds=({**crd, "spec": {"group": "example.com"}},))):
            pass
