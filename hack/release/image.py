"""The container image, made without a daemon and without root: Debian's Python, the locked wheels, the program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hack.release import debian, dependencies, oci, tree
from hack.release.tree import Tree

USER = 65532
"""As in ``deploy/controllers/deployment.yaml``; a number, so that Kubernetes can tell that it is not root."""
_PASSWD = f"root:x:0:0:root:/:/sbin/nologin\nnodewright:x:{USER}:{USER}:nodewright:/tmp:/sbin/nologin\n"
_GROUP = f"root:x:0:\nnodewright:x:{USER}:\n"


@dataclass(frozen=True, slots=True)
class Request:
    """``name`` with its tag; ``downloads`` keeps Debian's packages; ``commit``: "" where it is not known."""

    name: str
    version: str
    wheel: bytes
    architectures: Sequence[str]
    when: int
    downloads: Path
    commit: str = ""


@dataclass(frozen=True, slots=True)
class Contents:
    """One architecture of the image, before it is packed."""

    architecture: str
    packages: list[debian.Package]
    system: Tree
    locked: Tree
    program: Tree


@dataclass(frozen=True, slots=True)
class Image:
    """``digest``: as ``sha256:…``, what a Deployment pins. ``archive``: an OCI layout as a tar."""

    digest: str
    archive: bytes
    contents: Sequence[Contents]


def build(request: Request) -> Image:
    """Raises ReleaseError where something can't be fetched."""
    program = dependencies.program(request.wheel)
    contents = [_contents(request, architecture, program) for architecture in request.architectures]
    platforms = [
        oci.Platform(
            each.architecture,
            [
                (f"packages of Debian {debian.SUITE}", _layer(each.system, request.when)),
                ("wheels of requirements-runtime.lock", _layer(each.locked, request.when)),
                (f"nodewright {request.version}", _layer(each.program, request.when)),
            ],
        )
        for each in contents
    ]
    digest, archive = oci.layout(platforms, oci.Described(request.name, _config(request), request.when))
    return Image(digest, archive, contents)


def _contents(request: Request, architecture: str, program: Tree) -> Contents:
    packages = debian.fetch(architecture, request.downloads)
    system = {
        **debian.rootfs(packages),
        "etc/passwd": tree.file(_PASSWD),
        "etc/group": tree.file(_GROUP),
        "etc/nsswitch.conf": tree.file("hosts: files dns\n"),
        "tmp": tree.folder(0o1777),
    }
    return Contents(architecture, packages, system, dependencies.locked(architecture), program)


def _layer(files: Tree, when: int) -> bytes:
    return tree.zipped(tree.to_tar(files, when))


def _config(request: Request) -> dict[str, object]:
    labels = {
        "org.opencontainers.image.title": "nodewright",
        "org.opencontainers.image.version": request.version,
        "org.opencontainers.image.licenses": "Apache-2.0",
    }
    return {
        "User": f"{USER}:{USER}",
        "Env": [
            "PATH=/usr/local/bin:/usr/bin", "PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1", "LANG=C.UTF-8",
            "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
        ],
        "Entrypoint": ["/usr/local/bin/nodewright"],
        "Cmd": ["run"],
        "WorkingDir": "/",
        "Labels": labels | ({"org.opencontainers.image.revision": request.commit} if request.commit else {}),
    }  # fmt: skip
