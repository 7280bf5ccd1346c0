"""Which version has used a data folder last? An older one must not: it would drop fields that it does not know."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path

from nodewright import __version__
from nodewright.apiserver.app.private_files import write_private
from nodewright.apiserver.store.forcing import sync_folder
from nodewright.cli.exits import CliError
from nodewright.cli.versions import is_newer

STAMP = "version.json"
FORMAT = 1
"""Of the folder: which files it has and what they mean. The tables within the database have a number of their own."""
_STATE = ("state.db", "state.db-wal", "state.mark")


def check_in(folder: Path) -> None:
    """Before anything in a folder that is held is read: leave it to a later version, or keep a copy for an earlier one.

    The state as it was lies in ``before-VERSION`` of the folder then. Raises CliError.
    """
    stamp = folder / STAMP
    found = _read(stamp)
    if found is not None and (found[0] > FORMAT or is_newer(found[1], __version__)):
        raise _of_a_later_version(folder, found[1])
    if found is not None and found[0] == FORMAT and not is_newer(__version__, found[1]):
        return
    try:
        if (folder / _STATE[0]).exists():
            _keep_copy(folder, folder / f"before-{__version__}")
        write_private(stamp, json.dumps({"format": FORMAT, "nodewright": __version__}).encode())
    except OSError as error:
        if found is None and not (folder / _STATE[0]).exists():
            return  # nothing is there that could be lost; what needs the space says so
        text = f"{folder}: no copy for the earlier version can be kept: {error.strerror or error}"
        raise CliError(text, "Make room on the disk") from error


def _of_a_later_version(folder: Path, version: str) -> CliError:
    text = f"{folder} was used by Nodewright {version}, and this is {__version__}"
    return CliError(text, "Use that version, or restore a backup of this one into another folder")


def _keep_copy(folder: Path, kept: Path) -> None:
    """One that is there was made before a start that was cut short, and is older than what that start has changed."""
    if kept.exists():
        return
    draft = folder / f".{kept.name}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    for name in (*_STATE, STAMP):
        with suppress(FileNotFoundError):
            write_private(draft / name, (folder / name).read_bytes())
    draft.rename(kept)
    sync_folder(folder)


def _read(stamp: Path) -> tuple[int, str] | None:
    """Format and version; None if there is none. Raises CliError for a damaged one."""
    try:
        found = json.loads(stamp.read_bytes())
        return int(found["format"]), str(found["nodewright"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        hint = "If this version has used the folder last, remove that file"
        raise CliError(f"{stamp} says no version: {type(error).__name__}", hint) from error
