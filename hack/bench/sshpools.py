"""What hosts over SSH cost the provider: 50 Machines at once, and looks over a pool of 1000.

The hosts are the users of one sshd in a process of its own (``hack.sshd``): logins, commands and answers are real,
steps end at once. Both sides share the cores of this machine; CPU is that of the provider's process alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncssh

from hack.bench.figures import Figure
from hack.sshd import pool_of
from providers.base.contract import BOOTSTRAP_DATA, BootstrapRef, HostIdentity, HostRequest
from providers.ssh.provider import SSHProvider

POOL, SECRET = "racks", "racks-key"
MACHINES, HOSTS = 50, 1000
_CONFIG = {"apiVersion": "ssh.nodewright.dev/v1alpha1", "kind": "SSHMachineConfig", "pool": POOL}


class _Held:
    """The pool as an API server holds it."""

    def __init__(self, pool: dict[str, Any]) -> None:
        self.pool = pool

    async def read(self, _api_version: str, _kind: str, _name: str) -> Mapping[str, Any]:
        return self.pool

    async def report(self, obj: Mapping[str, Any], status: Mapping[str, Any]) -> Mapping[str, Any]:
        before = self.pool.get("status") or {}
        hosts = {**(before.get("hosts") or {}), **(status.get("hosts") or {})}
        version = str(int(obj["metadata"]["resourceVersion"]) + 1)
        metadata = {**self.pool["metadata"], "resourceVersion": version}
        self.pool = {**self.pool, "metadata": metadata, "status": {**before, **status, "hosts": hosts}}
        return self.pool


class _Secrets:
    def __init__(self, data: Mapping[str, Mapping[str, bytes]]) -> None:
        self._data = data

    async def read(self, name: str, of_type: str = "") -> Mapping[str, bytes]:
        return self._data[name]


def pools() -> list[Figure]:
    return [*asyncio.run(_machines()), *asyncio.run(_looks())]


@contextmanager
def _provider(count: int) -> Iterator[SSHProvider]:
    key = asyncssh.generate_private_key("ssh-ed25519")
    with tempfile.TemporaryDirectory(prefix="nodewright-bench-") as name:
        public = Path(name) / "key.pub"
        public.write_bytes(key.export_public_key())
        line = [sys.executable, "-m", "hack.sshd", str(public)]
        with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            told = json.loads(server.stdout.readline())
            pool = pool_of(POOL, SECRET, {"port": told["port"], "hostKeys": [told["hostKey"]]}, count)
            data = {SECRET: {"ssh-privatekey": key.export_private_key()}, "join": {BOOTSTRAP_DATA: b"#!/bin/sh\n"}}
            yield SSHProvider(POOL, _Secrets(data), _Held(pool))
            server.kill()


def _request(number: int) -> HostRequest:
    identity = HostIdentity(f"uid-{number}", "default", f"m-{number}", "", "here")
    return HostRequest(identity, _CONFIG, "hash", bootstrap=BootstrapRef("join", "script"))


async def _seconds(count: int) -> tuple[float, float]:
    """Wall and CPU from nothing to ``count`` Machines whose steps were begun, logins included."""
    with _provider(count) as provider:
        began, cpu = time.monotonic(), time.process_time()
        await asyncio.gather(*(provider.create(_request(number)) for number in range(count)))
        spent = time.monotonic() - began, time.process_time() - cpu
        await provider.close()
    return spent


def _resident() -> float:
    """MiB of this process that are in memory now. ``statm``: proc(5), in pages."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def _machines() -> list[Figure]:
    one, _ = await _seconds(1)
    all_, cpu = await _seconds(MACHINES)
    return [
        Figure("ssh_50_claims_seconds", all_, "s", "lower", "one", one),
        Figure("ssh_50_claims_ratio", all_ / one, "", "lower", "one after another", float(MACHINES)),
        Figure("ssh_50_claims_cpu_seconds", cpu, "s", "lower"),
    ]


async def _looks() -> list[Figure]:
    with _provider(HOSTS) as provider:
        before = _resident()
        cpu = time.process_time()
        await provider.list()
        first = time.process_time() - cpu
        memory = _resident() - before
        cpu, began = time.process_time(), time.monotonic()
        await provider.list()
        again, wall = time.process_time() - cpu, time.monotonic() - began
        await provider.close()
    return [
        Figure("ssh_1000_hosts_login_cpu_seconds", first, "s", "lower"),
        Figure("ssh_1000_hosts_look_cpu_seconds", again, "s", "lower", "goal", 2.0),
        Figure("ssh_1000_hosts_look_seconds", wall, "s", "lower"),
        Figure("ssh_1000_connections_mib", memory, "MiB", "lower"),
    ]
