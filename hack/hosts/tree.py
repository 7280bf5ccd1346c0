"""The Debian tree that all hosts of a lab share, made once by mmdebstrap and kept in the cache folder.

It is a stock system with cloud-init, containerd and sshd, and what a container of systemd-nspawn needs so that a
kubelet runs in it (``files``). Neither kubelet nor kubeadm are in it. The cache is named by the digest of all that it
is made of, so a changed list of packages makes a new tree.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from pathlib import Path

from hack.hosts import files
from hack.hosts.parts import LabError, run

PACKAGES = (
    "ca-certificates", "cloud-init", "conntrack", "containerd", "containernetworking-plugins", "curl", "dbus",
    "ebtables", "ethtool", "iproute2", "iptables", "iputils-ping", "jq", "kmod", "mount", "netbase", "nftables",
    "openssh-server", "procps", "python3-venv", "runc", "socat", "sudo", "systemd", "systemd-sysv",
)  # fmt: skip
_NO_SERVICES = 'printf "#!/bin/sh\\nexit 101\\n" > "$1/usr/sbin/policy-rc.d"; chmod 755 "$1/usr/sbin/policy-rc.d"'


def cache_folder() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "nodewright" / "hosts"


def find() -> Path | None:
    """The tree if it is there; never makes it."""
    tree = _path()
    return tree if tree.is_dir() else None


def ensure() -> Path:
    """The tree; makes it where it is missing (about a minute). Raises LabError if that fails."""
    found = find()
    if found is not None:
        return found
    target, partial = _path(), _path().with_suffix(f".{os.getpid()}")
    target.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    print(f"making the tree of all hosts with {len(PACKAGES)} packages of {suite()} …", file=sys.stderr, flush=True)
    try:
        _debootstrap(partial)
        files.write_all(partial)
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    print(f"made it in {time.monotonic() - started:.0f} s: {target}", file=sys.stderr, flush=True)
    return target


def _debootstrap(target: Path) -> None:
    packages = f"--include={','.join(PACKAGES)}"
    options = ["--mode=root", "--variant=apt", "--quiet", packages, f"--customize-hook={_NO_SERVICES}"]
    run("mmdebstrap", *options, suite(), str(target), mirror())


def mirror() -> str:
    """Where this machine's own apt finds the distribution's main archive."""
    origins = run("apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages")
    for line in origins.splitlines():
        codename, _, uri = line.partition(" ")
        if codename == suite():
            return uri
    raise LabError(f"apt of this machine knows no archive of {suite()}: run `apt-get update`")


def suite() -> str:
    values = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return values.get("VERSION_CODENAME", "").strip('"')


def _path() -> Path:
    made_of = "\n".join([suite(), *PACKAGES, *(f"{path} {mode:o}\n{text}" for path, (mode, text) in files.ALL.items())])
    return cache_folder() / f"{suite()}-{hashlib.sha256(made_of.encode()).hexdigest()[:12]}"
