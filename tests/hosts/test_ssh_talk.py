"""Hosts of a lab answer as the fast fake does (``tests/providers/test_ssh_talk.py`` has the same conversation)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from api.sshhostpool import SSHHost
from hack.hosts.lab import Lab
from providers.ssh.connections import Connections
from tests.hosts import sshpools
from tests.providers.sshtalk import EXPECTED, talk
from tests.providers.sshworld import HeldSecrets

pytestmark = [pytest.mark.hosts, pytest.mark.slow]
JOINED = "mkdir -p /etc/kubernetes && touch /etc/kubernetes/kubelet.conf"


async def test_a_host_with_real_sshd_and_systemd_says_what_every_host_says(lab: Lab, tmp_path: Path) -> None:
    pool = await asyncio.to_thread(sshpools.Pool, lab, tmp_path, ["talk1"])
    try:
        guest = pool.guests["talk1"]
        secrets = HeldSecrets({sshpools.SECRET: {"ssh-privatekey": pool.key.read_bytes()}})
        host, connections = SSHHost.model_validate(pool.entry("talk1")), Connections(secrets)

        async def happens(script: str) -> None:
            for _ in range(3000):
                if (await asyncio.to_thread(guest.execute, script)).returncode == 0:
                    return
                await asyncio.sleep(0.1)
            raise AssertionError(f"it did not come to that: {script}")

        async def joins() -> None:
            await happens("[ ! -e /var/lib/nodewright/ssh/join.sh ]")
            await happens(JOINED)

        async def cleans() -> None:
            await happens("[ ! -e /var/lib/nodewright/ssh/claim ] && [ ! -e /var/lib/nodewright/ssh/releasing ]")

        heard = await talk(lambda script: connections.run(host, sshpools.SECRET, script), joins=joins, cleans=cleans)
        await connections.close()
        assert heard == EXPECTED
    finally:
        await asyncio.to_thread(pool.remove)
