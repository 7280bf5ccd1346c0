"""The fast fake answers as hosts of a lab do: ``tests/hosts/test_ssh_talk.py`` has the same conversation with those."""

from __future__ import annotations

from pathlib import Path

from api.sshhostpool import SSHHost
from providers.ssh.connections import Connections
from tests.providers.sshtalk import EXPECTED, talk
from tests.providers.sshworld import SECRET, World


async def test_a_fake_host_says_what_every_host_says(tmp_path: Path) -> None:
    world = World(tmp_path, 1, {})
    await world.up()
    held = world.hosts["h1"]
    host, connections = SSHHost.model_validate(held.entry()), Connections(world.secrets)

    async def joins() -> None:
        held.has_joined()

    async def cleans() -> None:
        world.clean()

    heard = await talk(lambda script: connections.run(host, SECRET, script), joins=joins, cleans=cleans)
    await connections.close()
    await world.down()
    assert heard == EXPECTED
