"""Karpenter with its provider of simulated Nodes, and kwok, built of pinned Go modules into the cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from hack import golang
from hack.binaries import TOOLS, BinaryMissing, cache_folder, one_builder

PACKAGES = {"karpenter": "sigs.k8s.io/karpenter/kwok", "kwok": "sigs.k8s.io/kwok/cmd/kwok"}
MODULES = {"karpenter": "sigs.k8s.io/karpenter", "kwok": "sigs.k8s.io/kwok"}


def ensure(name: str) -> Path:
    """The program; its first build takes some minutes of CPU. Raises BinaryMissing."""
    target = cache_folder(TOOLS / name) / name
    with one_builder(target):
        return target if os.access(target, os.X_OK) else _build(name, target)


def _build(name: str, target: Path) -> Path:
    partial = target.with_suffix(f".{os.getpid()}")
    print(f"building {name} ({PACKAGES[name]}) …", file=sys.stderr, flush=True)
    started = time.monotonic()
    golang.build(TOOLS / name, partial, PACKAGES[name])
    partial.replace(target)
    print(f"built {name} in {time.monotonic() - started:.0f} s: {target}", file=sys.stderr, flush=True)
    return target


def module(name: str) -> tuple[Path, str]:
    """Where the sources of the pinned module lie, and its version. Raises BinaryMissing."""
    command = [golang.compiler(), "mod", "download", "-json", MODULES[name]]
    done = subprocess.run(command, cwd=TOOLS / name, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BinaryMissing(f"{MODULES[name]} can't be had:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return Path(found["Dir"]), found["Version"]
