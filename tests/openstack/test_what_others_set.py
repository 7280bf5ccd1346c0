"""A config that changes, on a real OpenStack: what somebody else has set on the server stays, also in a rebuild."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from typing import Any

from hack.openstack.accounts import MICROVERSION, connect
from providers.base.contract import Host, HostIdentity, HostRequest, HostState, InProgress, Provider, Updated
from providers.openstack import ownership_tags
from tests.openstack.tier import REAL, TestCloud
from tests.providers.openstack.scene import CONFIG, provider_with

pytestmark = REAL


async def _until(provider: Provider, uid: str, state: HostState | None) -> Host | None:
    for _ in range(300):
        host = await provider.get(uid)
        if (host.state if host else None) is state:
            return host
        await asyncio.sleep(0.5)
    raise AssertionError(f"it is {host}")


async def _change(provider: Provider, wanted: HostRequest) -> None:
    answer: Any = InProgress()
    while isinstance(answer, InProgress):
        host = await provider.get(wanted.identity.machine_uid)
        assert host is not None
        answer = await provider.update(wanted, host, drained=True)
        await asyncio.sleep(0.5)
    assert answer == Updated()


async def test_what_others_have_set_on_a_server_stays(openstack_cloud: TestCloud) -> None:
    provider = provider_with(cloud={"clouds.yaml": openstack_cloud.login()})
    compute = connect(openstack_cloud.clouds_yaml, "demo").compute
    uid = str(uuid.uuid4())
    ours = {"tags": ["blue", "a b?"], "metadata": {"team": "blue", "cost:centre": "7"}, "updates": {"rebuild": True}}
    wanted = HostRequest(HostIdentity(uid, "test", "m-others-0", "story"), {**CONFIG, **ours}, "hash-1")
    await provider.create(wanted)
    host = await _until(provider, uid, HostState.RUNNING)
    assert host is not None

    def told() -> tuple[set[str], dict[str, str]]:
        server = compute.get(f"/servers/{host.id}", microversion=MICROVERSION).json()["server"]
        tags = {tag for tag in server["tags"] if not tag.startswith(ownership_tags.TAG)}
        return tags, {key: value for key, value in server["metadata"].items() if not key.startswith(ownership_tags.TAG)}

    assert told() == ({"blue", "a b?"}, ours["metadata"])
    compute.put(f"/servers/{host.id}/tags/backup", microversion=MICROVERSION)
    compute.post(f"/servers/{host.id}/metadata", json={"metadata": {"owner": "ops"}}, microversion=MICROVERSION)
    changed = {**CONFIG, "tags": ["green"], "metadata": {"team": "green"}, "updates": {"rebuild": True}}
    await _change(provider, replace(wanted, config=changed, spec_hash="hash-2"))
    assert told() == ({"green", "backup"}, {"team": "green", "owner": "ops"})
    rebuilt = {**CONFIG, "image": "debian-13", "updates": {"rebuild": True}}
    await _change(provider, replace(wanted, config=rebuilt, spec_hash="hash-3"))
    assert told() == ({"backup"}, {"owner": "ops"})
    await provider.delete(host)
    await _until(provider, uid, None)
