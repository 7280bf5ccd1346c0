"""What the provider does when a cloud behaves as clouds do: lost answers, full zones, things left behind."""

from __future__ import annotations

import asyncio
import base64
import logging
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from providers.base.contract import (
    Host,
    HostIdentity,
    HostRequest,
    HostState,
    InProgress,
    NeedsDrain,
    NeedsReplacement,
    NodeRegistration,
    Provider,
    Updated,
    Versions,
)
from providers.base.errors import ErrorClass, ProviderError
from providers.openstack import creation, registration
from tests.providers.openstack.fake_cloud import PASSWORD, TOKEN, FakeCloud, Mishap
from tests.providers.openstack.scene import CONFIG, USER_DATA, HeldSecrets, provider_of


def request(**config: Any) -> HostRequest:
    uid = str(uuid.uuid4())
    identity = HostIdentity(uid, "test", f"m-{uid[:4]}", "story")
    return HostRequest(identity, {**CONFIG, **config}, "hash-1", Versions(kubelet="1.34.0"))


async def until(provider: Provider, uid: str, state: HostState | None) -> Host | None:
    """The host once it is in that state; None: once it is gone."""
    for _ in range(20):
        host = await provider.get(uid)
        if (host.state if host else None) is state:
            return host
    raise AssertionError(f"it is {host}")


async def update(provider: Provider, wanted: HostRequest, drained: bool) -> Any:
    for _ in range(20):
        host = await provider.get(wanted.identity.machine_uid)
        assert host is not None
        answer = await provider.update(wanted, host, drained)
        if not isinstance(answer, InProgress):
            return answer
    raise AssertionError("it does not end")


async def test_the_console_is_that_of_the_machines_server(cloud: FakeCloud) -> None:
    provider, wanted = provider_of(cloud), request()
    await provider.create(wanted)
    host = await until(provider, wanted.identity.machine_uid, HostState.RUNNING)
    assert host is not None
    cloud.nova.consoles[host.id] = "".join(f"line {number}\n" for number in range(1000))
    shown = await provider.console(host)
    assert shown.endswith("line 998\nline 999\n")
    assert len(shown.splitlines()) == 60
    cloud.nova.consoles[host.id] = "x" * 1_000_000
    assert len(await provider.console(host)) == 65536
    with pytest.raises(ProviderError) as raised:
        await provider.console(replace(host, id=str(uuid.uuid4())))
    assert raised.value.error_class is ErrorClass.NOT_FOUND


@pytest.mark.parametrize("after", [True, False], ids=["carried out", "never arrived"])
async def test_a_lost_answer_makes_no_second_server(
    cloud: FakeCloud, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider, wanted = provider_of(cloud), request()
    cloud.mishaps.append(Mishap("POST", "/servers", after=after))
    with pytest.raises(ProviderError):
        await provider.create(wanted)
    if not after:
        with pytest.raises(ProviderError) as caught:
            await provider.create(wanted)
        assert caught.value.error_class is ErrorClass.TIMEOUT
        assert caught.value.retry_after
        assert caught.value.retry_after <= creation.UNSURE
        monkeypatch.setattr(creation, "UNSURE", 0.0)
    host = await provider.create(wanted)
    assert list(cloud.servers) == [host.id]
    assert len(cloud.ports) == 1


async def test_ports_of_a_create_that_was_refused_go_at_once(cloud: FakeCloud) -> None:
    cloud.nova.quota = 0
    provider, wanted = provider_of(cloud), request()
    with pytest.raises(ProviderError) as caught:
        await provider.create(wanted)
    assert caught.value.error_class is ErrorClass.QUOTA_EXCEEDED
    assert "instances" in caught.value.message
    assert cloud.ports == {}
    assert await provider.list() == ()


async def test_ports_wait_for_their_server_to_go(cloud: FakeCloud) -> None:
    cloud.nova.deletions_take = 3
    provider, wanted = provider_of(cloud), request()
    await provider.create(wanted)
    host = await until(provider, wanted.identity.machine_uid, HostState.RUNNING)
    assert host is not None
    await provider.delete(host)
    await until(provider, wanted.identity.machine_uid, HostState.DELETING)
    assert len(cloud.ports) == 1
    await until(provider, wanted.identity.machine_uid, None)
    assert cloud.ports == {}


async def test_a_port_that_can_not_be_deleted_keeps_the_host_in_sight(cloud: FakeCloud) -> None:
    provider, wanted = provider_of(cloud), request()
    await provider.delete(await provider.create(wanted))
    cloud.mishaps += [Mishap("DELETE", "/ports/.*", status=500) for _ in range(2)]
    await until(provider, wanted.identity.machine_uid, HostState.DELETING)
    await until(provider, wanted.identity.machine_uid, None)
    assert not cloud.mishaps
    assert cloud.ports == {}


async def test_floating_ips_and_trunks_go_with_their_server(cloud: FakeCloud) -> None:
    ports = [{"network": "nodes", "trunk": True, "floatingIP": {"network": "public"}}]
    provider, wanted = provider_of(cloud), request(ports=ports)
    host = await provider.create(wanted)
    assert len(cloud.floating_ips) == len(cloud.trunks) == 1
    await provider.delete(host)
    await until(provider, wanted.identity.machine_uid, None)
    assert cloud.floating_ips == cloud.trunks == cloud.ports == {}


async def test_of_two_servers_of_one_machine_the_older_one_stays(cloud: FakeCloud) -> None:
    provider, wanted = provider_of(cloud), request()
    first = await provider.create(wanted)
    twin = {**cloud.servers[first.id], "id": str(uuid.uuid4()), "created": "2026-02-02T00:00:00Z"}
    cloud.servers[twin["id"]] = twin
    shown = {host.id: host.state for host in await provider.list()}
    assert shown[twin["id"]] is HostState.DELETING
    for _ in range(4):
        await provider.list()
    assert list(cloud.servers) == [first.id]


async def test_a_server_without_a_place_is_tried_again_elsewhere(cloud: FakeCloud) -> None:
    provider, wanted = provider_of(cloud), request(flavor="m1.huge", availabilityZones=["az1", "az2"])
    uid = wanted.identity.machine_uid
    assert (await provider.create(wanted)).provider_id == ""
    await until(provider, uid, HostState.DELETING)
    await until(provider, uid, None)
    with pytest.raises(ProviderError) as caught:
        await provider.create(wanted)
    assert caught.value.error_class is ErrorClass.STOCK_OUT
    assert "No valid host" in caught.value.message
    assert "az1" in caught.value.message
    assert (await provider.create(wanted)).failure_domain == "az2"
    await until(provider, uid, None)
    with pytest.raises(ProviderError) as again:
        await provider.create(wanted)
    assert again.value.retry_after == 2 * caught.value.retry_after
    assert cloud.ports == {}


async def test_servers_are_spread_over_the_zones(cloud: FakeCloud) -> None:
    provider = provider_of(cloud)
    for _ in range(4):
        await provider.create(request(availabilityZones=["az1", "az2"]))
    zones = sorted(server["OS-EXT-AZ:availability_zone"] for server in cloud.servers.values())
    assert zones == ["az1", "az1", "az2", "az2"]
    await asyncio.gather(*(provider.create(request(availabilityZones=["az1", "az2"])) for _ in range(20)))
    zones = [server["OS-EXT-AZ:availability_zone"] for server in cloud.servers.values()]
    assert zones.count("az1") == zones.count("az2") == 12, "a burst too, though it shares one census"
    fixed = await provider.create(replace(request(availabilityZones=["az1"]), failure_domain="az2"))
    assert fixed.failure_domain == "az2"


async def test_a_server_whose_cell_is_down_is_not_lost(cloud: FakeCloud) -> None:
    provider, wanted = provider_of(cloud), request()
    host = await provider.create(wanted)
    await until(provider, wanted.identity.machine_uid, HostState.RUNNING)
    whole = cloud.servers[host.id]
    lost = {"id": host.id, "status": "UNKNOWN", "steps": 0, "OS-EXT-STS:task_state": None, "flavor": {}}
    cloud.servers[host.id] = lost
    assert [one.state for one in await provider.list()] == [HostState.RUNNING]
    with pytest.raises(ProviderError) as caught:
        await provider_of(cloud).list()
    assert caught.value.error_class is ErrorClass.UNAVAILABLE
    cloud.servers[host.id] = whole


async def test_user_data_is_filled_in(cloud: FakeCloud) -> None:
    wanted = request(userData={"secretName": "data"}, keyPair="ops", configDrive=True, serverGroup="spread")
    wanted = replace(wanted, node=NodeRegistration(labels={"tier": "web"}))
    await provider_of(cloud).create(wanted)
    (body,) = [body for method, path, body in cloud.bodies if (method, path) == ("POST", "/servers")]
    server = body["server"]
    text = base64.b64decode(server["user_data"]).decode()
    owner = f"machine-controller/owned-by={wanted.identity.machine_uid}"  # a kubelet can register no annotation
    assert f"fqdn: {wanted.identity.name}\nlabels: {owner},tier=web\n" in text
    assert "keep: $(OTHER)" in text
    assert (server["key_name"], server["config_drive"]) == ("ops", True)
    assert body["OS-SCH-HNT:scheduler_hints"]["group"]


async def test_volumes_are_novas_to_make_and_to_remove(cloud: FakeCloud) -> None:
    config = {"bootVolume": {"sizeGiB": 40, "type": "ssd"}, "volumes": [{"sizeGiB": 100, "tag": "data"}]}
    await provider_of(cloud).create(request(**config))
    (body,) = [body for method, path, body in cloud.bodies if (method, path) == ("POST", "/servers")]
    boot, data = body["server"]["block_device_mapping_v2"]
    assert body["server"]["imageRef"] == ""
    assert (boot["source_type"], boot["volume_size"], boot["volume_type"]) == ("image", 40, "ssd")
    assert (data["source_type"], data["volume_size"], data["tag"]) == ("blank", 100, "data")
    assert all(disk["delete_on_termination"] for disk in (boot, data))


CHANGES: Mapping[str, tuple[dict[str, Any], Any]] = {
    "metadata and tags": ({"metadata": {"a": "b"}, "tags": ["t"]}, Updated),
    "security groups": ({"securityGroups": ["nodes"]}, Updated),
    "address pairs": (
        {"ports": [{"network": "nodes", "allowedAddressPairs": [{"ipAddress": "10.1.0.0/16"}]}]},
        Updated,
    ),
    "zones that include its own": ({"availabilityZones": ["az1"]}, Updated),
    "zones without its own": ({"availabilityZones": ["az2"]}, NeedsReplacement),
    "another network": ({"ports": [{"network": "public"}]}, NeedsReplacement),
    "another flavor": ({"flavor": "m1.small"}, NeedsReplacement),
    "another flavor where resizing is allowed": ({"flavor": "m1.small", "updates": {"resize": True}}, NeedsDrain),
    "another image": ({"image": "debian-13"}, NeedsReplacement),
    "another image where rebuilding is allowed": ({"image": "debian-13", "updates": {"rebuild": True}}, NeedsDrain),
    "key pair": ({"keyPair": "ops"}, NeedsReplacement),
    "volumes": ({"volumes": [{"sizeGiB": 1}]}, NeedsReplacement),
}


@pytest.mark.parametrize("case", CHANGES)
async def test_a_changed_config_is_applied_as_far_as_openstack_can(cloud: FakeCloud, case: str) -> None:
    change, want = CHANGES[case]
    provider, wanted = provider_of(cloud), request()
    host = await provider.create(wanted)
    await until(provider, wanted.identity.machine_uid, HostState.RUNNING)
    changed = replace(wanted, config={**wanted.config, **change}, spec_hash="hash-2")
    answer = await update(provider, changed, drained=False)
    assert isinstance(answer, want), answer
    if isinstance(answer, NeedsDrain):
        assert await update(provider, changed, drained=True) == Updated()
    after = await provider.get(wanted.identity.machine_uid)
    assert after is not None
    assert (after.id, after.spec_hash) == (host.id, "hash-1" if want is NeedsReplacement else "hash-2")
    if case == "security groups":
        assert next(iter(cloud.ports.values()))["security_groups"]
    if "flavor" in case and want is NeedsDrain:
        assert cloud.servers[host.id]["flavor"]["original_name"] == "m1.small"


DOMAINS: Mapping[str, tuple[str, dict[str, Any], Any]] = {
    "its own, which is none of the zones": ("az1", {"availabilityZones": ["az2"]}, Updated),
    "another one": ("az2", {}, NeedsReplacement),
    "another one among the zones": ("az2", {"availabilityZones": ["az1", "az2"]}, NeedsReplacement),
}


@pytest.mark.parametrize("case", DOMAINS)
async def test_the_failure_domain_says_where_a_server_belongs(cloud: FakeCloud, case: str) -> None:
    domain, change, want = DOMAINS[case]
    provider, wanted = provider_of(cloud), replace(request(), failure_domain="az1")
    await provider.create(wanted)
    await until(provider, wanted.identity.machine_uid, HostState.RUNNING)
    config = {**wanted.config, **change}
    changed = replace(wanted, config=config, failure_domain=domain, spec_hash="hash-2")
    assert isinstance(await update(provider, changed, drained=False), want)


async def test_a_resize_that_found_no_place_is_told_and_not_asked_for_at_every_look(cloud: FakeCloud) -> None:
    """Nova takes it, finds no host and sets the server back as it was, without a word."""
    provider, wanted = provider_of(cloud), request()
    uid = wanted.identity.machine_uid
    await provider.create(wanted)
    await until(provider, uid, HostState.RUNNING)
    config = {**wanted.config, "flavor": "m1.huge", "updates": {"resize": True}}
    changed = replace(wanted, config=config, spec_hash="hash-2")
    for _ in range(2):
        with pytest.raises(ProviderError) as caught:
            await update(provider, changed, drained=True)
        assert caught.value.error_class is ErrorClass.STOCK_OUT
        assert "m1.huge" in caught.value.message
    assert cloud.requests("POST /servers/.*/action") == 2
    back = replace(wanted, spec_hash="hash-3")
    assert await update(provider, back, drained=True) == Updated()


async def test_credentials_and_user_data_are_never_logged_nor_told(
    cloud: FakeCloud, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    provider, wanted = provider_of(cloud), request(userData={"secretName": "data"})
    echo = {"badRequest": {"message": f"bad login {PASSWORD} for you"}}
    cloud.mishaps += [Mishap("POST", "/servers", status=400, body=echo), Mishap("GET", "/servers/detail", status=403)]
    redact = []
    for work in (provider.create(wanted), provider.create(wanted), provider.create(wanted)):
        try:
            redact.append(str(await work))
        except ProviderError as error:
            redact.append(f"{error} {error.__cause__} {error.__context__}")
    said = caplog.text + "".join(redact) + repr(await provider.list())
    joined = base64.b64encode(USER_DATA.encode()).decode()[:24]
    assert [secret for secret in (PASSWORD, TOKEN, "very-secret-join-token", joined) if secret in said] == []


async def test_a_wrong_password_is_unauthorized_and_a_new_one_is_read(cloud: FakeCloud) -> None:
    opened = registration.open_with_secrets
    assert opened is not None
    secrets = HeldSecrets({"cloud": {"clouds.yaml": cloud.login().replace(PASSWORD.encode(), b"wrong-password")}})
    provider = opened("", CONFIG, secrets)
    with pytest.raises(ProviderError) as caught:
        await provider.list()
    assert caught.value.error_class is ErrorClass.UNAUTHORIZED
    assert "wrong-password" not in str(caught.value)
    secrets.secrets["cloud"] = {"clouds.yaml": cloud.login()}
    assert await provider.list() == ()


async def test_retry_after_reaches_the_caller(cloud: FakeCloud) -> None:
    cloud.mishaps.append(Mishap("GET", "/servers/detail", status=429, headers={"Retry-After": "7"}))
    with pytest.raises(ProviderError) as caught:
        await provider_of(cloud).list()
    assert (caught.value.error_class, caught.value.retry_after) == (ErrorClass.RATE_LIMITED, 7.0)


async def test_reads_are_repeated_and_changes_are_not(cloud: FakeCloud) -> None:
    provider = provider_of(cloud)
    cloud.mishaps += [Mishap("GET", "/servers/detail", status=503), Mishap("GET", "/servers/detail")]
    assert await provider.list() == ()
    cloud.mishaps.append(Mishap("POST", "/ports", status=503))
    with pytest.raises(ProviderError):
        await provider.create(request())
    assert cloud.asked["POST /ports"] == 1


async def test_twenty_servers_share_their_lists_and_look_ups(cloud: FakeCloud) -> None:
    provider, wanted = provider_of(cloud), [request() for _ in range(20)]
    await asyncio.gather(*(provider.create(one) for one in wanted))
    made = sum(cloud.asked.values())
    assert made <= 2 * 20 + 8, cloud.asked
    hosts = await provider.list()
    await asyncio.gather(*(provider.delete(host) for host in hosts))
    while await provider.list():
        pass
    assert cloud.ports == {}
    assert sum(cloud.asked.values()) <= 5 * 20, cloud.asked


async def test_a_list_at_rest_is_one_request_for_each_page(cloud: FakeCloud) -> None:
    provider = provider_of(cloud)
    for _ in range(2):
        await provider.create(request())
    for _ in range(3):
        await provider.list()
    before = sum(cloud.asked.values())
    await provider.list()
    assert sum(cloud.asked.values()) - before == 1
    template = next(iter(cloud.servers.values()))
    for number in range(450):
        cloud.servers[f"alien-{number}"] = {**template, "id": f"alien-{number}", "metadata": {}}
    before = sum(cloud.asked.values())
    assert len(await provider.list()) == 2
    assert sum(cloud.asked.values()) - before == 3


async def test_no_call_holds_the_event_loop(cloud: FakeCloud) -> None:
    """The SDK blocks for as long as the cloud does: here until the loop has gone round again."""
    gaps: list[float] = []

    async def watch() -> None:
        while True:
            before = time.perf_counter()
            cpu = time.thread_time()
            await asyncio.sleep(0.001)
            gaps.append(min(time.perf_counter() - before, time.thread_time() - cpu))

    provider, wanted = provider_of(cloud), request()
    await provider.list()  # the SDK's import and login
    watching = asyncio.ensure_future(watch())
    host = await provider.create(wanted)
    await provider.validate(CONFIG)
    await provider.shape(CONFIG)
    await provider.update(replace(wanted, spec_hash="2"), host, False)
    await provider.delete(host)
    await provider.list()
    watching.cancel()
    assert max(gaps) < 0.05, "a call ran on the event loop itself"
