"""Files that only their owner may read, replaced as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from nodewright.apiserver.store.forcing import sync_folder


def private_folder(path: Path) -> Path:
    """Make `path` a folder of mode 0700 if it is not there, parents included, and give it back. Raises OSError.

    A folder that is there keeps its mode, since it may be somebody's home; every file of ours in it is 0600.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def write_private(path: Path, content: bytes) -> None:
    """Put `content` at `path` with mode 0600: a reader sees the old file or the new one, never a part.

    When it returns, a power cut leaves the new one: the folder is forced to the disk, too, since a rename that is only
    in memory is undone by one. A symbolic link at `path` is replaced, not followed. Raises OSError.
    """
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(path)
        sync_folder(path.parent)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
