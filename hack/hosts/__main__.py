"""``python -m hack.hosts install | up FOLDER | down FOLDER``."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from hack import binaries
from hack.hosts import images, parts, tree
from hack.hosts.lab import Lab
from hack.hosts.provider.provider import API_VERSION, KIND
from providers.base.registry import Registry

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet", "kubeadm")

PREVIOUS_PROGRAMS = ("kubelet", "kubeadm")
"""Those that hosts also get in the minor version before."""


def install() -> None:
    """Everything that hosts need, with a line for each part that takes long."""
    started = time.monotonic()
    parts.install()
    for name in PROGRAMS:
        binaries.ensure(name)
    for name in PREVIOUS_PROGRAMS:
        binaries.ensure(name, binaries.PREVIOUS)
    images.ensure_pause()
    print(f"hosts boot from {tree.ensure()}; all parts are here after {time.monotonic() - started:.0f} s")


def missing() -> str:
    """What of a lab is not here, and how it is made; "" if all of it is."""
    lacking = [name for name in PROGRAMS if binaries.find(name) is None]
    lacking += [name for name in PREVIOUS_PROGRAMS if binaries.find(name, binaries.PREVIOUS) is None]
    if parts.missing():
        return parts.missing()
    if Registry.installed().find(API_VERSION, KIND) is None:
        lacking.append("the lab's provider")
    return f"{', '.join(lacking) or 'the tree'} not found: {parts.REMEDY}" if lacking or tree.find() is None else ""


def main() -> int:
    try:
        match sys.argv[1:]:
            case ["install"]:
                install()
            case ["up", folder]:
                lab = Lab.make(Path(folder).absolute())
                print(f"lab {lab.folder} on {lab.net.bridge}: name it as `lab:` in a LabMachineConfig")
            case ["down", folder]:
                Lab(Path(folder).absolute()).clean()
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except (parts.LabError, binaries.BinaryMissing) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
