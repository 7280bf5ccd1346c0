"""Hosts of a lab as machines of people: each runs sshd with a key of its own, and lets one user key in."""

from __future__ import annotations

import base64
import json
import subprocess
import time
from pathlib import Path
from typing import Any

from hack.hosts.guests import Guest
from hack.hosts.lab import Lab, Record

POOL, SECRET = "racks", "racks-key"


class Pool:
    """``guests`` by name. ``remove`` ends all of them. ``patience``: seconds for each to come up with its images."""

    def __init__(self, lab: Lab, folder: Path, names: list[str], patience: float = 300.0) -> None:
        self.lab = lab
        self.key = folder / "id_ed25519"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key], check=True)
        public = self.key.with_suffix(".pub").read_text()
        self.guests: dict[str, Guest] = {}
        for name in names:
            record = lab.start(Record(name, name, 0, "2026-01-01T00:00:00+00:00", {}), {})
            self.guests[name] = guest = lab.guest(record)
            (guest.root / "root/.ssh").mkdir(mode=0o700, exist_ok=True)
            (guest.root / "root/.ssh/authorized_keys").write_text(public)
        for guest in self.guests.values():
            guest.wait_booted(patience)
            wait_for_sshd(guest)

    def objects(self) -> list[dict[str, Any]]:
        """The pool and the Secret with its key, for the namespace ``default``."""
        key = base64.b64encode(self.key.read_bytes()).decode()
        return [
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": SECRET, "namespace": "default"},
                "type": "kubernetes.io/ssh-auth",
                "data": {"ssh-privatekey": key},
            },
            {
                "apiVersion": "ssh.nodewright.dev/v1alpha1",
                "kind": "SSHHostPool",
                "metadata": {"name": POOL, "namespace": "default"},
                "spec": {"secretName": SECRET, "hosts": [self.entry(name) for name in self.guests]},
            },
        ]

    def entry(self, name: str) -> dict[str, Any]:
        guest = self.guests[name]
        words = (guest.root / "etc/ssh/ssh_host_ed25519_key.pub").read_text().split()
        return {"name": name, "address": guest.address, "hostKeys": [" ".join(words[:2])]}

    def remove(self) -> None:
        for name in self.guests:
            self.lab.remove(name)


def claim(guest: Guest) -> dict[str, Any] | None:
    """What the claim on the host says; None without one."""
    done = guest.execute("sed -n 2p /var/lib/nodewright/ssh/claim")
    return json.loads(done.stdout) if done.stdout.strip() else None


def power_on(pool: Pool, guest: Guest) -> None:
    """Start a host that has ended, and wait until it can be logged in to."""
    guest.boot(pool.lab.payload)
    guest.wait_booted()
    wait_for_sshd(guest)


def wait_for_sshd(guest: Guest, seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while guest.execute("ss -Hltn 'sport = :22' | grep -q .").returncode != 0:
        assert time.monotonic() < deadline, f"{guest.name} has no sshd: {guest.execute('systemctl status ssh').stdout}"
        time.sleep(0.1)
