"""Cgroups of a host: its own in every hierarchy, so that its pods count for it and end with it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PARENT = "nodewright-lab"
_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "systemd", "unified")
"""Hierarchies of cgroup v1; on a machine with the unified hierarchy alone there is one."""
_WEIGHTS = {"cpu.shares": 1024, "cpu.weight": 100}
"""Of cgroup v1 and of v2: what each group has unless somebody says otherwise."""
_CPUSET = ("cpuset.cpus", "cpuset.mems")


def make(host: str) -> None:
    for hierarchy in _hierarchies():
        folder = hierarchy / PARENT / host
        folder.mkdir(parents=True, exist_ok=True)
        for name in _CPUSET if hierarchy.name == "cpuset" else ():
            allowed = (hierarchy / name).read_text()
            for below in (hierarchy / PARENT, folder):
                (below / name).write_text(allowed)


def weigh(percent: int) -> None:
    """What all hosts together get of a busy processor, in percent of what any other group of processes gets.

    For example 25: beside one other group that is as busy, hosts get 25 / (100 + 25), a fifth. Hosts of a fleet have
    processors of their own, so they don't take time from the controllers; here they share them. Needs one host.
    """
    for hierarchy in _hierarchies():
        for name, usual in _WEIGHTS.items():
            if (file := hierarchy / PARENT / name).is_file():  # not in other hierarchies and versions
                file.write_text(str(usual * percent // 100))


def enter(host: str) -> None:
    """Move the calling process into the cgroups of ``host``; its children are born there."""
    for hierarchy in _hierarchies():
        (hierarchy / PARENT / host / "cgroup.procs").write_text(str(os.getpid()))


def processes(host: str) -> set[int]:
    """All processes of the host, those of its pods included."""
    found: set[int] = set()
    for folder in _folders(host):
        with contextlib.suppress(OSError):  # it went meanwhile
            found.update(int(line) for line in (folder / "cgroup.procs").read_text().split())
    return found


def kill(host: str, patience: float = 10.0) -> None:
    """End every process of the host. Raises TimeoutError if some won't go."""
    deadline = time.monotonic() + patience
    while left := processes(host):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise TimeoutError(f"{host}: processes {sorted(left)} don't end")
        time.sleep(0.05)


def remove(host: str) -> None:
    for folder in sorted(_folders(host), key=lambda each: len(each.parts), reverse=True):
        with contextlib.suppress(OSError):
            folder.rmdir()
    for hierarchy in _hierarchies():
        with contextlib.suppress(OSError):  # the parent goes with the last host
            (hierarchy / PARENT).rmdir()


def _folders(host: str) -> list[Path]:
    """All cgroups of the host, in every hierarchy. One that goes meanwhile is passed over."""
    tops = (hierarchy / PARENT / host for hierarchy in _hierarchies())
    return [Path(folder) for top in tops for folder, _, _ in os.walk(top)]


def _hierarchies() -> list[Path]:
    if (ROOT / "cgroup.controllers").is_file():
        return [ROOT]
    return [ROOT / name for name in _CONTROLLERS if (ROOT / name).is_dir()]
