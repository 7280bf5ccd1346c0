"""Which process this is, so that another one on the same machine can prove that it has ended.

A Lease of a process that was killed runs out after its duration. On the same machine nobody has to wait for that: the
kernel knows whether the process is still there. Elsewhere, and wherever anything is unclear, it counts as alive.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MACHINE = ("host", "boot", "pidNamespace", "timeNamespace")
"""What two processes must have in common before one may judge the other by its number."""


def this_process() -> Mapping[str, Any]:
    """Its number and start (clock ticks since boot), and the boot and namespaces in which these mean something.

    {} where the system does not tell them (anything but Linux).
    """
    try:
        facts = {
            "host": socket.gethostname(),
            "boot": _BOOT_ID.read_text().strip(),
            "pidNamespace": str(Path("/proc/self/ns/pid").readlink()),
            "timeNamespace": _time_namespace(),
            "pid": os.getpid(),
        }
    except OSError:
        return {}
    started = _started(os.getpid())
    return facts | {"startTime": started[1]} if started is not None else {}


def is_gone(process: Mapping[str, Any]) -> bool:
    """Whether ``process`` (as ``this_process`` returned it) has certainly ended."""
    here = this_process()
    pid, start = process.get("pid"), process.get("startTime")
    if not here or type(pid) is not int or type(start) is not int or pid <= 0:
        return False
    if any(process.get(name) != here[name] for name in _MACHINE):
        return False
    try:
        os.kill(pid, 0)  # sees processes of other users too, which /proc may hide
    except ProcessLookupError:
        return True
    except OverflowError:
        return False
    except PermissionError:
        pass
    found = _started(pid)
    if found is None:
        return False
    state, started = found
    return started != start or state == "Z"


def _started(pid: int) -> tuple[str, int] | None:
    """State and start of a process; None if it can't be read."""
    with suppress(OSError, ValueError, IndexError):
        # The second field is the name of the program in brackets, and may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return fields[0], int(fields[19])
    return None


def _time_namespace() -> str:
    with suppress(OSError):
        return str(Path("/proc/self/ns/time").readlink())
    return ""
