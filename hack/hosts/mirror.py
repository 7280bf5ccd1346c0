"""A mirror of Kubernetes' programs on the bridge of a lab, with the layout and the checksums of dl.k8s.io."""

from __future__ import annotations

import hashlib
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PROGRAMS = ("kubelet", "kubeadm")


def checksums(programs: dict[str, Path]) -> dict[str, str]:
    """SHA-256 by name."""
    return {name: _digest(path) for name, path in programs.items()}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        return


class Mirror:
    """``with Mirror(folder, address) as mirror: mirror.url``; ``add`` puts a version into it,
    ``folder`` takes any file.
    """

    def __init__(self, folder: Path, address: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._server = ThreadingHTTPServer((address, 0), partial(_Quiet, directory=str(folder)))
        self.url = f"http://{address}:{self._server.server_address[1]}"

    def add(self, version: str, programs: dict[str, Path]) -> None:
        """``version`` with v; ``programs``: name → file."""
        target = self.folder / version / "bin" / "linux" / "amd64"
        target.mkdir(parents=True, exist_ok=True)
        for name, path in programs.items():
            (target / name).unlink(missing_ok=True)
            (target / name).symlink_to(path)
            (target / f"{name}.sha256").write_text(_digest(path))

    def archives(self, programs: dict[str, Path], path: str = "") -> dict[str, Any]:
        """``spec.bootstrap.archives`` for ``programs`` of this mirror. One of http needs checksums."""
        return {"kubernetes": {"mirror": self.url + path, "sha256": checksums(programs)}}

    def __enter__(self) -> Mirror:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
