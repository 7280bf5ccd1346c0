"""Hosts of a pool without machines: one asyncssh server whose users are the hosts, with what lies on each in memory.

`python -m hack.sshd KEY_FILE` runs it in a process of its own, so that its CPU is not that of whom it is asked by. It
prints one line of JSON (``port``, ``hostKey``), and on each line of its standard input one with its counts.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh

_VALUE = re.compile(r"^(id|claim)=(\S+)$", re.MULTILINE)
_STEP = re.compile(r"^# (look|claim|start|release)$", re.MULTILINE)


@dataclass
class Counts:
    """Since the start."""

    logins: int = 0
    commands: dict[str, int] = field(default_factory=dict)
    at_once: int = 0
    most_at_once: int = 0


class Hosts:
    """User ``h17`` is host h17. Its steps end at once; a host that is released is free at once."""

    def __init__(self) -> None:
        self.key = asyncssh.generate_private_key("ssh-ed25519")
        self.counts = Counts()
        self.claims: dict[str, str] = {}
        self.port = 0
        self._started: dict[str, str] = {}
        self._acceptor: asyncssh.SSHAcceptor | None = None

    async def up(self, user_key: str) -> None:
        """``user_key``: the public key that logs in."""
        self._acceptor = await asyncssh.listen(
            "127.0.0.1", 0, server_host_keys=[self.key], process_factory=self._serve, backlog=1024,
            authorized_client_keys=asyncssh.import_authorized_keys(user_key),
            server_factory=lambda: _Counted(self.counts),
        )  # fmt: skip
        self.port = self._acceptor.get_port()

    async def down(self) -> None:
        assert self._acceptor is not None
        self._acceptor.close()
        await self._acceptor.wait_closed()

    def pool(self, name: str, secret: str, count: int) -> dict[str, Any]:
        """The SSHHostPool of h1 to h``count``."""
        public = " ".join(self.key.export_public_key().decode().split()[:2])
        return pool_of(name, secret, {"port": self.port, "hostKeys": [public]}, count)

    async def _serve(self, process: asyncssh.SSHServerProcess[str]) -> None:
        self.counts.at_once += 1
        self.counts.most_at_once = max(self.counts.most_at_once, self.counts.at_once)
        try:
            script = await process.stdin.read()
            found = _STEP.search(script)
            step = found[1] if found else ""
            self.counts.commands[step] = self.counts.commands.get(step, 0) + 1
            host = str(process.get_extra_info("username"))
            for word, value in self._answer(host, step, dict(_VALUE.findall(script))).items():
                process.stdout.write(f"{word} {base64.b64encode(value.encode()).decode()}\n")
            process.exit(0)
        finally:
            self.counts.at_once -= 1

    def _answer(self, host: str, step: str, values: dict[str, str]) -> dict[str, str]:
        if step == "claim":
            return {"claim": self.claims.setdefault(host, base64.b64decode(values["claim"]).decode())}
        if step == "start":
            self._started[host] = values["id"]
            return {"started": "yes"}
        if step == "release":
            self.claims.pop(host, None)
            return {"releasing": "yes"}
        held = {"claim": self.claims[host], "started": self._started.get(host, "")} if host in self.claims else {}
        return {"hostname": host, "boot": "3f0e", **held}


class _Counted(asyncssh.SSHServer):
    def __init__(self, counts: Counts) -> None:
        counts.logins += 1


def pool_of(name: str, secret: str, login: dict[str, Any], count: int) -> dict[str, Any]:
    """An SSHHostPool of ``count`` hosts behind one ``login``: port and hostKeys."""
    hosts = [{"name": f"h{at}", "address": "127.0.0.1", "user": f"h{at}", **login} for at in range(1, count + 1)]
    return {
        "apiVersion": "ssh.nodewright.dev/v1alpha1",
        "kind": "SSHHostPool",
        "metadata": {"name": name, "namespace": "default", "resourceVersion": "1"},
        "spec": {"secretName": secret, "hosts": hosts},
    }


async def _main(user_key: str) -> None:
    hosts = Hosts()
    await hosts.up(user_key)
    public = " ".join(hosts.key.export_public_key().decode().split()[:2])
    print(json.dumps({"port": hosts.port, "hostKey": public}), flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        counts = hosts.counts
        told = {"logins": counts.logins, "commands": counts.commands, "mostAtOnce": counts.most_at_once}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]).read_text()))
