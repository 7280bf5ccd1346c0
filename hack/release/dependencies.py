"""The part of the image that comes from the lock file, and the program itself, with their bytecode."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from hack.release import tree
from hack.release.debian import PYTHON
from hack.release.parts import ROOT, ReleaseError, run, uv
from hack.release.tree import Tree

LOCK = ROOT / "requirements-runtime.lock"
SITE = f"usr/local/lib/python{PYTHON}/dist-packages"
"""Where Debian's Python looks for what did not come with Debian."""
PLATFORMS = {"amd64": "x86_64-manylinux_2_28", "arm64": "aarch64-manylinux_2_28"}
_SCRIPT = f"#!/usr/bin/python{PYTHON} -sP\nimport sys\n\nfrom nodewright.cli.main import main\n\nsys.exit(main())\n"
_WORKERS = 2
"""Fixed: which files one process compiles must not depend on the machine."""


def locked(architecture: str) -> Tree:
    """All wheels of the lock for ``architecture``, each checked against its hash. Raises ReleaseError."""
    if architecture not in PLATFORMS:
        raise ReleaseError(f"{architecture}: there is no such architecture here, only {', '.join(PLATFORMS)}")
    with tempfile.TemporaryDirectory(prefix="nodewright-image-") as name:
        target = Path(name) / "site"
        run(
            uv(), "pip", "install", "--quiet", f"--target={target}", f"--python-version={PYTHON}", "--no-deps",
            f"--python-platform={PLATFORMS[architecture]}", "--only-binary=:all:", "--require-hashes",
            "--link-mode=copy", f"--requirement={LOCK}",
        )  # fmt: skip
        for extra in ("bin", ".lock"):
            shutil.rmtree(target / extra, ignore_errors=True)
            (target / extra).unlink(missing_ok=True)
        return with_bytecode(_without_tests(_of_folder(target)))


def program(wheel: bytes) -> Tree:
    """The wheel as an installer would leave it, and its script. Its data (manual pages) are for people with a shell."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/") and ".data/" not in name]
        files = {name: tree.file(archive.read(name)) for name in names}
    return {**with_bytecode(files), "usr/local/bin/nodewright": tree.file(_SCRIPT, 0o755)}


def with_bytecode(files: Tree) -> Tree:
    """``files`` below ``SITE``, with a ``.pyc`` for each ``.py`` that holds for as long as the image does.

    The image's folders can't be written, and compiling a thousand modules at each start takes seconds. Raises
    ReleaseError where this Python makes other bytecode than the image's.
    """
    if f"{sys.version_info.major}.{sys.version_info.minor}" != PYTHON:
        raise ReleaseError(
            f"the image has Python {PYTHON}: make it with that version, this is {sys.version.split()[0]}"
        )
    with tempfile.TemporaryDirectory(prefix="nodewright-bytecode-") as name:
        root = Path(name)
        for path, entry in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(entry.data)
        _compile(root, sorted(path for path in files if path.endswith(".py")))
        made = {path: tree.file((root / path).read_bytes()) for path in _bytecode(root)}
    return {f"{SITE}/{path}": entry for path, entry in {**files, **made}.items()}


def _compile(root: Path, sources: list[str]) -> None:
    """In processes that each do the same files in the same order: what marshal writes depends on what was before."""
    options = ["-q", "-s", str(root), "-p", f"/{SITE}", "--invalidation-mode=unchecked-hash", "-i", "-"]
    command = [sys.executable, "-I", "-m", "compileall", *options]
    running = []
    for number in range(_WORKERS):
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
            env={"PYTHONHASHSEED": "0", "LANG": "C.UTF-8"},
        )  # fmt: skip
        running.append((process, "\n".join(str(root / path) for path in sources[number::_WORKERS])))
    for process, paths in running:
        assert process.stdin is not None
        process.stdin.write(paths)
        process.stdin.close()
    for process, _ in running:
        process.wait()  # a module of another version of Python has no bytecode; nobody imports it


def _bytecode(root: Path) -> list[str]:
    return [str(path.relative_to(root)) for path in sorted(root.rglob("*.pyc"))]


def _of_folder(folder: Path) -> Tree:
    return {
        str(path.relative_to(folder)): tree.file(path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in {"INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json"}
    }


def _without_tests(files: Tree) -> Tree:
    """Tests of other projects are a third of what they install."""
    return {path: entry for path, entry in files.items() if "tests" not in path.split("/")[1:-1]}
