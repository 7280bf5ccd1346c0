"""What the lab needs from this machine, and how to get it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = {
    "mmdebstrap": "mmdebstrap",
    "systemd-nspawn": "systemd-container",
    "ip": "iproute2",
    "podman": "podman",
    "runc": "runc",
    "cloud-init": "",
}
"""Program → Debian package that brings it; "" for those that only run inside of the hosts."""
BMC_PACKAGES = {"ipmi_sim": "openipmi", "ipmitool": "ipmitool"}
"""Program → package of Debian, for tests of power commands. The other tests do without them."""
INOTIFY_INSTANCES = 8192
"""For all hosts of this machine together; a host with a kubelet takes about 20."""
FREE_SHARE = 0.15
"""Of a file system: with less of it free, kubelets take no pods (``imagefs.available``, their own default)."""
REMEDY = "run `make lab` as root on Debian or Ubuntu"


class LabError(Exception):
    """The lab can't be had or a host of it does not do what it should; the message says why and what to do."""


def missing() -> str:
    """One line that says what keeps hosts from being started here; "" if nothing does."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return f"hosts need Linux and root: {REMEDY}"
    lacking = [program for program, package in PACKAGES.items() if package and shutil.which(program) is None]
    return f"{', '.join(lacking)} not found: {REMEDY}" if lacking else ""


def no_bmc() -> str:
    """One line that says what tests with a BMC lack here; "" if they lack nothing."""
    lacking = [program for program in BMC_PACKAGES if shutil.which(program) is None]
    return f"{', '.join(lacking)} not found: {REMEDY}" if lacking else ""


def no_room(folder: Path) -> str:
    """One line that says why no pod would run on hosts below ``folder``; "" if there is room for them.

    252 GiB, of which 47 are free: 19 %, which is enough; with 37 it is 14 %.
    """
    total, _, free = shutil.disk_usage(folder)
    if free >= FREE_SHARE * total:
        return ""
    shares = f"{free >> 30} of {total >> 30} GiB are free, and below {FREE_SHARE:.0%} kubelets take no pods"
    return f"the file system of {folder} is too full for hosts: {shares}; free some, or take a folder elsewhere"


def install() -> None:
    """Install what is missing from the distribution. Raises LabError where that can't be done."""
    wanted = {**PACKAGES, **BMC_PACKAGES}
    lacking = [package for program, package in wanted.items() if package and shutil.which(program) is None]
    if not lacking:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise LabError(missing() or no_bmc())
    run("apt-get", "update", "-q")
    run("apt-get", "install", "-q", "-y", "--no-install-recommends", *lacking)


def run(*command: str, text: str | None = None) -> str:
    """Run a program of this machine and return what it printed. Raises LabError with the end of what it said."""
    variables = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, env=variables)
    if done.returncode:
        raise LabError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-1000:]}")
    return done.stdout


def allow_many_hosts() -> None:
    """Raise what the kernel allows one user of inotify: each systemd takes several, and 128 end at about 23 hosts.

    Where it can't be raised fewer hosts work as before.
    """
    file = Path("/proc/sys/fs/inotify/max_user_instances")
    if int(file.read_text()) < INOTIFY_INSTANCES:
        with contextlib.suppress(OSError):
            file.write_text(str(INOTIFY_INSTANCES))
