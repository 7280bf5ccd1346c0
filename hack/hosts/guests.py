"""One booted host: an overlay over the tree, in its namespace and cgroups, by systemd-nspawn."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from hack.hosts import cgroups, network
from hack.hosts.network import Net
from hack.hosts.parts import LabError, run

_STATE_FOLDERS = {"containerd": "/var/lib/containerd", "kubelet": "/var/lib/kubelet", "etcd": "/var/lib/etcd",
                  "pods": "/var/log/pods"}  # fmt: skip
"""Folders that may not lie on an overlay, bound from the disk of this machine."""
_POWER_OFF = signal.SIGRTMIN + 4
_CNI = "etc/cni/net.d/10-lab.conflist"


@dataclass(frozen=True, slots=True)
class Guest:
    """``folder`` holds all of it; ``number`` is its place on ``net``; ``name`` is its host name."""

    folder: Path
    net: Net
    number: int
    name: str

    @property
    def address(self) -> str:
        return self.net.address(self.number)

    @property
    def _cgroup(self) -> str:
        return self.net.namespace(self.number)

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def console(self) -> Path:
        """What the host printed on its console since it was made."""
        return self.folder / "console.log"

    def is_running(self) -> bool:
        return bool(cgroups.processes(self._cgroup))

    def prepare(self, tree: Path, seed: dict[str, bytes]) -> None:
        """Make the disk and the network. ``seed``: files of cloud-init's NoCloud source; none: cloud-init is off."""
        for name in ("up", "work", "root", *_STATE_FOLDERS):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        if not self.root.is_mount():
            layers = f"lowerdir={tree},upperdir={self.folder / 'up'},workdir={self.folder / 'work'}"
            run("mount", "-t", "overlay", "overlay", "-o", layers, str(self.root))
        self._write("etc/hostname", f"{self.name}\n")
        self._write("etc/hosts", f"127.0.0.1 localhost\n{self.address} {self.name}\n")
        self._write("etc/resolv.conf", f"nameserver {self.net.gateway}\n")
        self._write(_CNI, json.dumps(_cni(self.net.pods(self.number))))
        if seed:
            for name, content in seed.items():
                self._write(f"var/lib/cloud/seed/nocloud/{name}", content, 0o600)
        else:
            self._write("etc/cloud/cloud-init.disabled", "")
        network.connect(self.net, self.number)
        cgroups.make(self._cgroup)

    def boot(self, payload: Path | None = None) -> None:
        """Start it, and again after it has rebooted or was stopped. ``payload`` is seen at /opt/payload, read-only."""
        if self.is_running():
            return
        binds = [f"--bind={self.folder / name}:{path}" for name, path in _STATE_FOLDERS.items()]
        if payload is not None:
            binds.append(f"--bind-ro={payload}:/opt/payload")
        command = [
            "systemd-nspawn", "--boot", f"--directory={self.root}", f"--machine={self.name}", "--register=no",
            "--keep-unit", "--capability=all", "--system-call-filter=@keyring bpf @swap", "--bind=/dev/kmsg",
            f"--network-namespace-path=/run/netns/{self._cgroup}", "--resolv-conf=off", "--timezone=off", *binds,
        ]  # fmt: skip
        starter = [sys.executable, "-m", "hack.hosts.starter", self._cgroup, *command]
        variables = {**os.environ, "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "1", "PYTHONPATH": _project()}
        with self.console.open("ab") as console:
            done = subprocess.run(
                starter, stdin=subprocess.DEVNULL, stdout=console, stderr=console, env=variables, check=False
            )
        if done.returncode:
            raise LabError(f"{self.name} could not be started, {self.console} says why")

    def wait_booted(self, patience: float = 300.0) -> None:
        """Until its systemd has started all that is wanted. Raises LabError if it takes longer."""
        deadline = time.monotonic() + patience
        state = ""
        while (left := deadline - time.monotonic()) > 0:
            with contextlib.suppress(LabError):  # ``--wait`` waits for ever where a job of systemd hangs
                state = self.execute("systemctl is-system-running --wait", left).stdout.strip()
            if state in {"running", "degraded"}:
                return
            time.sleep(0.1)
        why = f"its systemd said {state or 'nothing'} last; {self.console} says how far it is"
        raise LabError(f"{self.name} did not come up in {patience:.0f} s: {why}")

    def stop(self, patience: float = 5.0) -> None:
        """Ask its systemd to power off; what is left after ``patience`` seconds is killed. The disk stays."""
        for pid in _inits(cgroups.processes(self._cgroup)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, _POWER_OFF)
        deadline = time.monotonic() + patience
        while self.is_running() and time.monotonic() < deadline:
            time.sleep(0.05)
        cgroups.kill(self._cgroup)

    def destroy(self, patience: float = 2.0) -> None:
        """Stop it and remove all of it; safe to call again after it was interrupted."""
        self.stop(patience)
        network.disconnect(self.net, self.number)
        if self.root.is_mount():
            run("umount", "--lazy", str(self.root))
        cgroups.remove(self._cgroup)
        shutil.rmtree(self.folder, ignore_errors=True)

    def execute(self, command: str, patience: float | None = None) -> subprocess.CompletedProcess[str]:
        """Run a shell command as root in the running host, and return its end and what it printed.

        Raises LabError if it runs for longer than ``patience`` seconds; it is killed then.
        """
        inits = _inits(cgroups.processes(self._cgroup))
        inside = ["nsenter", "-t", str(min(inits, default=0)), "-a", "/bin/sh", "-c", command]
        try:
            return subprocess.run(inside, capture_output=True, text=True, check=False, timeout=patience)
        except subprocess.TimeoutExpired as error:
            raise LabError(f"{self.name}: {command} did not end in {patience:.0f} s") from error

    def _write(self, path: str, content: str | bytes, mode: int = 0o644) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)  # resolv.conf may be a link that leads nowhere
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        file.chmod(mode)


def _inits(pids: set[int]) -> set[int]:
    """Those that are process 1 of a container: the last number of ``NSpid`` is 1 and it has two."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            numbers = next(line.split()[1:] for line in lines if line.startswith("NSpid:"))
            if len(numbers) == 2 and numbers[-1] == "1":
                found.add(pid)
    return found


def _cni(pods: str) -> dict[str, object]:
    ipam = {"type": "host-local", "ranges": [[{"subnet": pods}]], "routes": [{"dst": "0.0.0.0/0"}]}
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": True, "hairpinMode": True, "ipam": ipam}
    return {
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}],
    }


def _project() -> str:
    return str(Path(__file__).parents[2])
