"""Tags and metadata that somebody else has set on a server are theirs: changes of a config leave them alone."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from providers.base.contract import HostIdentity, HostRequest, HostState, InProgress, Provider, Updated
from providers.base.errors import ProviderError
from providers.openstack import ownership_tags
from providers.openstack.config import parse
from tests.providers.openstack.fake_cloud import FakeCloud, Mishap
from tests.providers.openstack.paging import Thing
from tests.providers.openstack.scene import CONFIG, provider_of

OURS: dict[str, Any] = {"tags": ["blue", "a b?"], "metadata": {"team": "blue", "cost:centre": "7"}}
NOTHING: dict[str, Any] = {"tags": [], "metadata": {}}


async def a_server(cloud: FakeCloud, **config: Any) -> tuple[HostRequest, Thing]:
    """One that is up, and the request that it was made for."""
    provider, uid = provider_of(cloud), str(uuid.uuid4())
    identity = HostIdentity(uid, "test", f"m-{uid[:4]}", "story")
    wanted = HostRequest(identity, {**CONFIG, **config}, "hash-1")
    host = await provider.create(wanted)
    while host.state is not HostState.RUNNING:
        (host,) = await provider.list()
    return wanted, cloud.servers[host.id]


async def change(cloud: FakeCloud, wanted: HostRequest, provider: Provider | None = None, **config: Any) -> HostRequest:
    """The server as another config wants it, whatever that takes."""
    provider = provider or provider_of(cloud)
    changed = replace(wanted, config={**wanted.config, **config}, spec_hash=f"{wanted.spec_hash}+")
    (host,) = await provider.list()
    answer: Any = InProgress()
    while isinstance(answer, InProgress):
        answer = await provider.update(changed, host, drained=True)
        (host,) = await provider.list()
    assert answer == Updated()
    assert host.spec_hash == changed.spec_hash
    return changed


def others(server: Thing) -> tuple[set[str], Mapping[str, str]]:
    """Tags and metadata but for the marks of the provider."""
    tags = {tag for tag in server["tags"] if not tag.startswith(ownership_tags.TAG)}
    return tags, {key: value for key, value in server["metadata"].items() if not key.startswith(ownership_tags.TAG)}


async def test_a_change_leaves_what_others_have_set(cloud: FakeCloud) -> None:
    wanted, server = await a_server(cloud, **OURS)
    server["tags"] = [*server["tags"], "backup"]
    server["metadata"] = {**server["metadata"], "owner": "ops"}
    wanted = await change(cloud, wanted, tags=["blue", "green"], metadata={"team": "green"})
    assert others(server) == ({"blue", "green", "backup"}, {"team": "green", "owner": "ops"})
    await change(cloud, wanted, **NOTHING)
    assert others(server) == ({"backup"}, {"owner": "ops"})


async def test_a_rebuild_leaves_what_others_have_set(cloud: FakeCloud) -> None:
    wanted, server = await a_server(cloud, updates={"rebuild": True}, **OURS)
    server["metadata"] = {**server["metadata"], "owner": "ops"}
    await change(cloud, wanted, image="debian-13", metadata={"team": "green"})
    assert others(server)[1] == {"team": "green", "owner": "ops"}


async def test_what_somebody_set_before_the_config_said_it_stays_when_the_config_no_longer_does(
    cloud: FakeCloud,
) -> None:
    wanted, server = await a_server(cloud)
    server["tags"] = [*server["tags"], "blue"]
    server["metadata"] = {**server["metadata"], "team": "blue"}
    wanted = await change(cloud, wanted, **OURS)
    await change(cloud, wanted, **NOTHING)
    assert others(server) == ({"blue"}, {"team": "blue"})


async def test_a_value_that_somebody_has_changed_since_is_theirs(cloud: FakeCloud) -> None:
    wanted, server = await a_server(cloud, **OURS)
    server["metadata"] = {**server["metadata"], "team": "red"}
    await change(cloud, wanted, **NOTHING)
    assert others(server) == (set(), {"team": "red"})


async def test_of_a_server_that_does_not_remember_nothing_is_taken_away(cloud: FakeCloud) -> None:
    wanted, server = await a_server(cloud, **OURS)
    known = ownership_tags.metadata_of(wanted, parse(wanted.config))
    server["metadata"] = dict(known)
    wanted = await change(cloud, wanted, tags=["green"], metadata={"new": "yes"})
    assert others(server) == ({"blue", "a b?", "green"}, {**OURS["metadata"], "new": "yes"})
    await change(cloud, wanted, **NOTHING)
    assert others(server) == ({"blue", "a b?"}, OURS["metadata"]), "what was added since is known"


STEPS = (("POST", "metadata"), ("PUT", "tags/green"), ("DELETE", "tags/blue"), ("DELETE", "metadata/cost:centre"))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS, ids=" ".join)
async def test_a_change_that_was_interrupted_is_gone_on_with(
    cloud: FakeCloud, step: tuple[str, str], after: bool
) -> None:
    wanted, server = await a_server(cloud, **OURS)
    server["tags"] = [*server["tags"], "backup"]
    cloud.mishaps.append(Mishap(step[0], f"/servers/[^/]*/{step[1]}", status=503, after=after))
    with pytest.raises(ProviderError):
        await change(cloud, wanted, tags=["green"], metadata={"team": "green"})
    assert not cloud.mishaps
    wanted = await change(cloud, wanted, tags=["green"], metadata={"team": "green"})
    assert others(server) == ({"green", "backup"}, {"team": "green"})
    await change(cloud, wanted, **NOTHING)
    assert others(server) == ({"backup"}, {})


async def test_more_is_remembered_than_one_value_of_metadata_holds(cloud: FakeCloud) -> None:
    many = {"tags": [f"tag-{number}" for number in range(40)], "metadata": {f"key-{n}": "x" * 255 for n in range(60)}}
    wanted, server = await a_server(cloud, **many)
    assert all(len(value) <= 255 for value in server["metadata"].values())
    server["metadata"] = {**server["metadata"], "owner": "ops"}
    await change(cloud, wanted, **NOTHING)
    assert others(server) == (set(), {"owner": "ops"})
    assert set(server["metadata"]) - {"owner"} <= {*ownership_tags.KEYS, "nodewright-own-0"}
