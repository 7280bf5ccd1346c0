"""Container images from static programs, as archives that ``ctr images import`` takes: no registry, no daemon."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import tarfile
from pathlib import Path

from hack import binaries
from hack.hosts import files
from hack.hosts.parts import LabError


def ensure_pause() -> Path:
    """An archive with the sandbox image; built with Go where it is missing. Raises LabError if that fails."""
    target = binaries.cache_folder() / "pause.tar"
    if not target.is_file():
        program = _static(binaries.TOOLS / "pause", target.with_suffix(""))
        partial = target.with_suffix(f".{os.getpid()}")
        partial.write_bytes(archive(files.PAUSE_IMAGE, program))
        partial.replace(target)
    return target


def archive(name: str, program: Path) -> bytes:
    """A docker archive of one image that holds nothing but ``program``, its entrypoint."""
    layer = _tar({program.name: (0o755, program.read_bytes())})
    digest = hashlib.sha256(layer).hexdigest()
    config = json.dumps({
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": [f"/{program.name}"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }).encode()  # fmt: skip
    identity = hashlib.sha256(config).hexdigest()
    manifest = [{"Config": f"{identity}.json", "RepoTags": [name], "Layers": [f"{digest}.tar"]}]
    parts = {f"{digest}.tar": layer, f"{identity}.json": config, "manifest.json": json.dumps(manifest).encode()}
    return _tar({path: (0o644, content) for path, content in parts.items()})


def _tar(content: dict[str, tuple[int, bytes]]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, (mode, data) in content.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), mode
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _static(package: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    command = ["go", "build", "-ldflags", "-s -w", "-o", str(target), f"./{package.name}"]
    done = subprocess.run(
        command, cwd=package.parent, env={**os.environ, "CGO_ENABLED": "0"}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise LabError(f"building {package.name} failed:\n{done.stderr[-2000:]}")
    return target
