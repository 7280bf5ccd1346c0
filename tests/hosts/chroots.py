"""The tree of the lab's hosts as a root to install in, without a boot; and a repository of packages to install from."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_INSIDE = """\
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/up,workdir=$2/work" "$2/root" &&
mount --rbind /dev "$2/root/dev" && mount -t proc proc "$2/root/proc" && exec chroot "$2/root" "$3"
"""


@dataclass(frozen=True)
class Chroot:
    """An overlay over the tree. What is done in it stays in ``folder``; its mounts end with each run."""

    tree: Path
    folder: Path

    @classmethod
    def make(cls, tree: Path, folder: Path) -> Chroot:
        for name in ("up", "work", "root"):
            (folder / name).mkdir(parents=True)
        (folder / "up").chmod(0o755)
        made = cls(tree, folder)
        made.write("/etc/apt/sources.list", "")  # nothing of the outside is asked
        made.write("/usr/local/sbin/systemctl", '#!/bin/sh\necho "$*" >> /srv/systemctl\n', 0o755)  # none runs here
        return made

    def run(self, script: str, shell: str = "/bin/sh") -> subprocess.CompletedProcess[str]:
        command = ["unshare", "--mount", "sh", "-c", _INSIDE, "-"]
        command += [str(self.tree), str(self.folder), shell]
        return subprocess.run(command, input=script, text=True, capture_output=True, check=False, timeout=300)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        file = self.folder / "up" / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def read(self, path: str) -> str:
        return self.changed(path).read_text()

    def changed(self, path: str) -> Path:
        """The file as a run has written it; not there if none has."""
        return self.folder / "up" / path.lstrip("/")


def package(folder: Path, name: str, version: str, program: str | Path) -> Path:
    """A package that holds ``/usr/bin/NAME``: with this text, or as this file."""
    root = folder / f"{name}-{version}"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "usr/bin").mkdir(parents=True)
    control = {"Package": name, "Version": version, "Architecture": "all", "Maintainer": "t <t@example.org>",
               "Description": name}  # fmt: skip
    (root / "DEBIAN/control").write_text("".join(f"{key}: {value}\n" for key, value in control.items()))
    if isinstance(program, Path):
        shutil.copyfile(program, root / "usr/bin" / name)
    else:
        (root / "usr/bin" / name).write_text(program)
    for path in (root, root / "DEBIAN", root / "usr", root / "usr/bin", root / "usr/bin" / name):
        path.chmod(0o755)
    target = folder / f"{name}_{version}_all.deb"
    subprocess.run(
        ["dpkg-deb", "-Znone", "--build", "--root-owner-group", str(root), str(target)], check=True, capture_output=True
    )
    shutil.rmtree(root)
    return target


@contextmanager
def signer() -> Iterator[Path]:
    """A folder of gpg with one key, gone afterwards with the agent that gpg starts."""
    home = Path(tempfile.mkdtemp(prefix="gpg"))  # its sockets have to have short names
    try:
        _gpg(home, "--quick-generate-key", "Packages of a test <t@example.org>", "ed25519", "sign", "never")
        yield home
    finally:
        subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False)
        shutil.rmtree(home, ignore_errors=True)


def public_key(home: Path) -> str:
    return _gpg(home, "--armor", "--export")


def index(folder: Path, home: Path) -> None:
    """Make of a folder of packages a flat repository that is signed."""
    entries = []
    for path in sorted(folder.glob("*.deb")):
        control = subprocess.run(["dpkg-deb", "--field", str(path)], check=True, capture_output=True, text=True).stdout
        entries.append(f"{control}Filename: ./{path.name}\nSize: {path.stat().st_size}\nSHA256: {_sha256(path)}\n")
    packages = folder / "Packages"
    packages.write_text("\n".join(entries))
    release = f"Date: Mon, 01 Jan 2024 00:00:00 UTC\nSHA256:\n {_sha256(packages)} {packages.stat().st_size} Packages\n"
    (folder / "Release").write_text(release)
    (folder / "InRelease").write_text(_gpg(home, "--clearsign", "--output", "-", str(folder / "Release")))


def _gpg(home: Path, *arguments: str) -> str:
    command = ["gpg", "--homedir", str(home), "--batch", "--yes", "--quiet", "--passphrase", "", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
