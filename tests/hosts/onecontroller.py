"""A controller that asks for one host of a pool and gives it back, or reboots or changes the one that it has, in a
process of its own: to be killed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from providers.base.contract import (
    BOOTSTRAP_DATA,
    BootstrapRef,
    Host,
    HostIdentity,
    HostRequest,
    HostState,
    KubeletUpgrade,
    Updated,
)
from providers.ssh.provider import SSHProvider
from tests.hosts import sshpools
from tests.providers.sshworld import HeldObjects, HeldSecrets

_STEPS = b"#!/bin/sh\necho begun >> /root/begun\ntouch /root/joined\n"


class Told(HeldObjects):
    """Each write is printed: who outlives this process finds it in the API server."""

    async def report(self, obj: Mapping[str, Any], status: Mapping[str, Any]) -> Mapping[str, Any]:
        written = await super().report(obj, status)
        print(json.dumps(written), flush=True)
        return written


async def changed(provider: SSHProvider, request: HostRequest, upgrade: KubeletUpgrade) -> None:
    """Asked again and again, as controllers ask."""
    while True:
        host = await provider.get(request.identity.machine_uid)
        assert host is not None
        if isinstance(await provider.update(replace(request, upgrade=upgrade), host, drained=True), Updated):
            return
        await asyncio.sleep(0.1)


async def main(told: dict[str, Any], private: bytes) -> None:
    objects = Told()
    objects.pool = told["pool"]
    key = {"ssh-privatekey": private}
    provider = SSHProvider(
        sshpools.POOL, HeldSecrets({"steps": {BOOTSTRAP_DATA: _STEPS}, sshpools.SECRET: key}), objects
    )
    identity = HostIdentity(told["uid"], "default", "m", "", "here")
    if "reboot" in told:
        host_id, name, attempt = told["reboot"]
        await provider.reboot(Host(host_id, told["uid"], name, "", HostState.RUNNING, "hash"), attempt)
        return
    config = {"apiVersion": "ssh.nodewright.dev/v1alpha1", "kind": "SSHMachineConfig", "pool": sshpools.POOL}
    if "change" in told:
        await changed(provider, HostRequest(identity, config, **told["change"]), KubeletUpgrade(told["script"], ""))
        return
    host = await provider.create(HostRequest(identity, config, "hash", bootstrap=BootstrapRef("steps", "script")))
    await provider.delete(host)
    for _ in range(600):
        if not await provider.list():
            return
        await asyncio.sleep(0.1)


if __name__ == "__main__":
    scene = json.loads(Path(sys.argv[1]).read_text())
    asyncio.run(main(scene, Path(scene["key"]).read_bytes()))
