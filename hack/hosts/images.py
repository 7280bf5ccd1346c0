"""Container images from programs, as archives that ``ctr images import`` takes: no registry, no daemon."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hack import binaries
from hack.hosts import files, parts
from hack.hosts.parts import LabError

PARTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "pause")
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Image:
    """``files``: path in the image → file of this machine, each executable. ``entrypoint`` (): none."""

    files: Mapping[str, Path]
    entrypoint: tuple[str, ...] = ()


def ensure_pause() -> Path:
    """An archive with the sandbox image; built with Go where it is missing. Raises LabError if that fails."""
    target = binaries.cache_folder() / "pause.tar"
    if not target.is_file():
        partial = target.with_suffix(f".{os.getpid()}")
        partial.write_bytes(archive({files.PAUSE_IMAGE: _pause()}))
        partial.replace(target)
    return target


def _pause() -> Image:
    program = binaries.cache_folder() / "pause"
    return Image({"pause": program if program.is_file() else _static(binaries.TOOLS / "pause", program)}, ("/pause",))


def ensure_control_plane(tools: Path = binaries.TOOLS) -> Path:
    """An archive with the images of kubeadm's static pods, made of the pinned builds; without add-ons.

    Raises LabError if that fails, BinaryMissing where one can't be built.
    """
    target = binaries.cache_folder(tools) / "control-plane.tar"
    if not target.is_file():
        listed = parts.run(str(binaries.ensure("kubeadm", tools)), "config", "images", "list",
                           "--kubernetes-version", binaries.kubernetes_version(tools))  # fmt: skip
        images = {name: _image(part, tools) for name in listed.split() if (part := _part_of(name)) in PARTS}
        partial = target.with_suffix(f".{os.getpid()}")
        partial.write_bytes(archive(images))
        partial.replace(target)
    return target


def _part_of(image: str) -> str:
    """``registry.k8s.io/etcd:3.6.8-0`` is etcd."""
    return image.rpartition(":")[0].rpartition("/")[2]


def _image(part: str, tools: Path) -> Image:
    """A program of ``binaries`` in the PATH of its image, and the C library that it was linked with.

    There is one etcd for all versions: kubeadm asks for an image by name, and etcd 3.6 serves both.
    """
    if part == "pause":
        return _pause()
    program = binaries.ensure(part, binaries.TOOLS if part == "etcd" else tools)
    libraries = re.findall(r"(/\S+) \(0x", parts.run("ldd", str(program)))
    return Image({f"usr/local/bin/{part}": program, **{path.lstrip("/"): Path(path) for path in libraries}})


def archive(images: Mapping[str, Image]) -> bytes:
    """A docker archive of images by their names, each of one layer."""
    content: dict[str, tuple[int, bytes]] = {}
    manifest = []
    for name, image in images.items():
        layer = _tar({path: (0o755, program.read_bytes()) for path, program in image.files.items()})
        digest = hashlib.sha256(layer).hexdigest()
        config = json.dumps({
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": [_PATH]} | ({"Entrypoint": list(image.entrypoint)} if image.entrypoint else {}),
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }).encode()  # fmt: skip
        identity = hashlib.sha256(config).hexdigest()
        content[f"{digest}.tar"] = (0o644, layer)
        content[f"{identity}.json"] = (0o644, config)
        manifest.append({"Config": f"{identity}.json", "RepoTags": [name], "Layers": [f"{digest}.tar"]})
    return _tar({**content, "manifest.json": (0o644, json.dumps(manifest).encode())})


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
