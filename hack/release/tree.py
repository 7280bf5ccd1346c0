"""A tree of files as a value, and as a tar whose bytes depend on nothing but the tree."""

from __future__ import annotations

import gzip
import io
import tarfile
from dataclasses import dataclass
from pathlib import PurePosixPath

FOLDER, FILE, LINK = "folder", "file", "link"


@dataclass(frozen=True, slots=True)
class Entry:
    """``mode``: permission bits. ``data``: content of a file. ``target``: where a symbolic link leads."""

    kind: str
    mode: int = 0o755
    data: bytes = b""
    target: str = ""


Tree = dict[str, Entry]
"""Path without a slash at its beginning or end → what is there. Parents need not be named. All of it is root's."""


def file(data: bytes | str, mode: int = 0o644) -> Entry:
    return Entry(FILE, mode, data.encode() if isinstance(data, str) else data)


def link(target: str) -> Entry:
    return Entry(LINK, 0o777, target=target)


def folder(mode: int = 0o755) -> Entry:
    return Entry(FOLDER, mode)


def from_tar(tar: bytes) -> Tree:
    """Of a tar with files, folders and links. Hard links become copies; devices are left out."""
    made: Tree = {}
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        for member in archive:
            path = member.name.removeprefix("./").strip("/")
            if not path or path == ".":
                continue
            if member.isdir():
                made[path] = folder(member.mode & 0o7777)
            elif member.issym():
                made[path] = link(member.linkname)
            elif member.isreg() or member.islnk():
                content = archive.extractfile(member)
                made[path] = file(content.read() if content else b"", member.mode & 0o7777)
    return made


def to_tar(tree: Tree, when: int) -> bytes:
    """Sorted, owned by root, every time ``when`` (seconds since the epoch), parents before what is in them."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, entry in sorted(_with_parents(tree).items()):
            info = tarfile.TarInfo(path)
            info.mode, info.mtime = entry.mode, when
            if entry.kind == FILE:
                info.size = len(entry.data)
                archive.addfile(info, io.BytesIO(entry.data))
            else:
                info.type = tarfile.DIRTYPE if entry.kind == FOLDER else tarfile.SYMTYPE
                info.linkname = entry.target
                archive.addfile(info)
    return out.getvalue()


def zipped(data: bytes) -> bytes:
    """As gzip without a name or a time."""
    return gzip.compress(data, compresslevel=6, mtime=0)


def _with_parents(tree: Tree) -> Tree:
    parents = {str(parent) for path in tree for parent in PurePosixPath(path).parents if str(parent) != "."}
    return {**{path: folder() for path in parents}, **tree}
