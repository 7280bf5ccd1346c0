"""A controller that asks for one host of a pool and gives it back, in a process of its own: to be killed."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from providers.base.contract import BOOTSTRAP_DATA, BootstrapRef, HostIdentity, HostRequest
from providers.ssh.provider import SSHProvider
from tests.hosts import sshpools
from tests.providers.sshworld import HeldObjects, HeldSecrets

_STEPS = b"#!/bin/sh\necho begun >> /root/begun\ntouch /root/joined\n"


async def main(told: dict[str, Any], private: bytes) -> None:
    objects = HeldObjects()
    objects.pool = told["pool"]
    key = {"ssh-privatekey": private}
    provider = SSHProvider(
        sshpools.POOL, HeldSecrets({"steps": {BOOTSTRAP_DATA: _STEPS}, sshpools.SECRET: key}), objects
    )
    identity = HostIdentity(told["uid"], "default", "m", "", "here")
    config = {"apiVersion": "ssh.nodewright.dev/v1alpha1", "kind": "SSHMachineConfig", "pool": sshpools.POOL}
    host = await provider.create(HostRequest(identity, config, "hash", bootstrap=BootstrapRef("steps", "script")))
    await provider.delete(host)
    for _ in range(600):
        if not await provider.list():
            return
        await asyncio.sleep(0.1)


if __name__ == "__main__":
    scene = json.loads(Path(sys.argv[1]).read_text())
    asyncio.run(main(scene, Path(scene["key"]).read_bytes()))
