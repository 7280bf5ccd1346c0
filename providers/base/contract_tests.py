"""The contract as tests. A provider passes if a subclass of ``ProviderContract`` does:

    class TestMyProvider(ProviderContract):
        registration = my_package.registration
        valid_config = {"apiVersion": "my.example/v1", "kind": "MyMachineConfig", "size": "small"}
        changed_config = {**valid_config, "size": "large"}

        async def let_time_pass(self) -> None:
            await asyncio.sleep(2)

Each rule of ``providers.base.contract`` has a test here, and every test ends by checking that nothing is left behind.
Needs pytest and pytest-asyncio, in either of its modes.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest
import pytest_asyncio
from jsonschema import Draft202012Validator

from providers.base.capability_contract import CapabilityContract
from providers.base.config_schema import problems_of
from providers.base.contract import (
    BOOTSTRAP_DATA,
    BootstrapRef,
    Host,
    HostIdentity,
    HostRequest,
    HostState,
    InProgress,
    NeedsDrain,
    NeedsReplacement,
    Provider,
    Registration,
    UpdateAnswer,
    Updated,
    Versions,
)
from providers.base.errors import ErrorClass, ProviderError

METHODS = ("validate", "create", "delete", "get", "list", "update", "shape")
_QUANTITY = re.compile(r"^[0-9]+(\.[0-9]+)?(m|[kKMGTPE]i?)?$")

BOOTSTRAP_DATA_OF_TESTS = b"#cloud-config\n{}\n"
BOOTSTRAP_SECRETS: Mapping[str, Mapping[str, bytes]] = {"contract-bootstrap": {BOOTSTRAP_DATA: BOOTSTRAP_DATA_OF_TESTS}}
"""Secrets beside the Machines of the tests. A provider that takes bootstrap data is opened so that it can read them."""


class HeldSecrets:
    """As ``providers.base.contract.Secrets``, from memory."""

    def __init__(self, secrets: Mapping[str, Mapping[str, bytes]]) -> None:
        self.secrets = dict(secrets)

    async def read(self, name: str, of_type: str = "") -> Mapping[str, bytes]:
        if name not in self.secrets:
            raise ProviderError(ErrorClass.NOT_FOUND, f"Secret contract/{name} does not exist")
        return self.secrets[name]


MANAGEMENT_CLUSTER = "0c5f4a9e-11aa-4c4e-9a51-9f2ad1d1c001"


@pytest.mark.asyncio
class ProviderContract(CapabilityContract):
    """Subclass it, name it ``Test…``, and set the first two attributes."""

    registration: ClassVar[Registration]
    valid_config: ClassVar[Mapping[str, Any]]
    """A config of a host that is cheap and comes up."""
    changed_config: ClassVar[Mapping[str, Any] | None] = None
    """One that differs from it; None: only the requested versions change."""
    impossible_config: ClassVar[Mapping[str, Any] | None] = None
    """One that passes the schema but can never work (an image that does not exist); None: there is none."""
    patience: ClassVar[int] = 200
    """How many ``let_time_pass`` a host may take to come up, to change or to go."""

    async def let_time_pass(self) -> None:
        """Wait a little; a provider on a virtual clock moves it."""
        await asyncio.sleep(0.05)

    async def open(self) -> Provider:
        """A new Provider object on the same scope, as after a restart of the program."""
        scope, opened = self.registration.scope_of(self.valid_config), self.registration.open_with_secrets
        if opened is not None and self.registration.reads_bootstrap_data:
            return opened(scope, self.valid_config, HeldSecrets(BOOTSTRAP_SECRETS))
        return self.registration.open(scope, self.valid_config)

    async def given_to(self, host: Host) -> bytes | None:
        """The user data with which the host came up; None: the tests can't tell."""
        return None

    # Fixtures and words of the tests

    @pytest_asyncio.fixture
    async def provider(self) -> AsyncIterator[Provider]:
        """The provider; afterwards each host that the test asked for is deleted, and none may be left."""
        self._asked: set[str] = set()
        provider = await self.open()
        yield provider
        for host in await provider.list():
            if host.machine_uid in self._asked:
                await provider.delete(host)
        left = [host for host in await self._until_gone(provider, self._asked) if host.machine_uid in self._asked]
        assert not left, f"left behind: {left}"

    def a_request(self, **changes: Any) -> HostRequest:
        """A request of a Machine that never existed before."""
        uid = str(uuid.uuid4())
        self._asked.add(uid)
        identity = HostIdentity(uid, "contract", f"contract-{uid[:8]}", "contract", MANAGEMENT_CLUSTER)
        request = HostRequest(identity, dict(self.valid_config), f"hash-{uid[:6]}", Versions(kubelet="1.34.0"))
        return replace(request, **changes)

    def changed(self, request: HostRequest) -> HostRequest:
        """The same Machine with another spec."""
        return replace(
            request,
            config=dict(self.changed_config or self.valid_config),
            spec_hash=f"{request.spec_hash}-2",
            versions=Versions(kubelet="1.34.1"),
        )

    async def until_running(self, provider: Provider, request: HostRequest) -> Host:
        for _ in range(self.patience):
            host = await provider.get(request.identity.machine_uid)
            assert host is not None, "a host that was created is not shown"
            assert host.state is not HostState.FAILED, host.failure
            if host.state is HostState.RUNNING and host.provider_id:
                return host
            await self.let_time_pass()
        raise AssertionError(f"host of {request.identity.name} did not come up")

    async def until_decided(self, provider: Provider, request: HostRequest, drained: bool) -> UpdateAnswer:
        """What ``update`` says in the end, asked as the controllers ask: again and again."""
        for _ in range(self.patience):
            host = await provider.get(request.identity.machine_uid)
            assert host is not None, "a host got lost while it was updated"
            answer = await provider.update(request, host, drained)
            if not isinstance(answer, InProgress):
                return answer
            assert answer.after >= 0
            await self.let_time_pass()
        raise AssertionError("the update did not come to an end")

    async def hosts_of(self, provider: Provider, request: HostRequest) -> list[Host]:
        return [h for h in await provider.list() if h.machine_uid == request.identity.machine_uid]

    async def _until_gone(self, provider: Provider, uids: set[str]) -> tuple[Host, ...]:
        hosts = await provider.list()
        for _ in range(self.patience):
            if not any(host.machine_uid in uids for host in hosts):
                break
            await self.let_time_pass()
            hosts = await provider.list()
        return hosts

    # The registration

    async def test_the_registration_has_a_name_and_valid_schemas(self) -> None:
        assert self.registration.name
        assert self.registration.config_kinds
        for config_kind in self.registration.config_kinds:
            assert "/" in config_kind.api_version, "the apiVersion of a config is group/version"
            Draft202012Validator.check_schema(dict(config_kind.schema))

    async def test_the_valid_config_passes_its_schema(self) -> None:
        (schema,) = [
            k.schema
            for k in self.registration.config_kinds
            if (k.api_version, k.kind) == (self.valid_config["apiVersion"], self.valid_config["kind"])
        ]
        assert problems_of(dict(self.valid_config), schema) == ()

    async def test_equal_configs_share_a_scope(self) -> None:
        scope_of = self.registration.scope_of
        assert scope_of(dict(self.valid_config)) == scope_of(dict(reversed(list(self.valid_config.items()))))

    async def test_every_method_is_a_coroutine(self, provider: Provider) -> None:
        assert [m for m in METHODS if not inspect.iscoroutinefunction(getattr(provider, m, None))] == []

    async def test_a_valid_config_has_no_problems(self, provider: Provider) -> None:
        assert await provider.validate(self.valid_config) == ()

    async def test_the_shape_says_cpu_and_memory(self, provider: Provider) -> None:
        shape = await provider.shape(self.valid_config)
        for resource in ("cpu", "memory"):
            assert _QUANTITY.match(shape.capacity[resource]), f"{resource} is no quantity"

    # Rule 1: create is idempotent by UID

    async def test_a_created_host_carries_uid_and_spec_hash(self, provider: Provider) -> None:
        request = self.a_request()
        host = await provider.create(request)
        assert (host.machine_uid, host.spec_hash) == (request.identity.machine_uid, request.spec_hash)
        assert host.id

    async def test_a_host_carries_the_mark_of_its_management_cluster(self, provider: Provider) -> None:
        """Several clusters may share an account: without it they take each other's hosts for orphans."""
        request = self.a_request()
        created = await provider.create(request)
        assert created.management_cluster == MANAGEMENT_CLUSTER
        await self.until_running(provider, request)
        (listed,) = await self.hosts_of(provider, request)
        assert listed.management_cluster == MANAGEMENT_CLUSTER

    async def test_creating_twice_gives_the_same_host(self, provider: Provider) -> None:
        request = self.a_request()
        first, second = await provider.create(request), await provider.create(request)
        assert first.id == second.id
        assert len(await self.hosts_of(provider, request)) == 1

    async def test_creating_at_the_same_time_gives_one_host(self, provider: Provider) -> None:
        request = self.a_request()
        hosts = await asyncio.gather(*(provider.create(request) for _ in range(4)))
        assert len({host.id for host in hosts}) == 1
        assert len(await self.hosts_of(provider, request)) == 1

    async def test_creating_again_after_a_cancelled_call_gives_one_host(self, provider: Provider) -> None:
        request = self.a_request()
        call = asyncio.ensure_future(provider.create(request))
        for _ in range(3):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await provider.create(request)
        assert len(await self.hosts_of(provider, request)) == 1

    async def test_creating_again_after_a_restart_gives_the_same_host(self, provider: Provider) -> None:
        request = self.a_request()
        first = await provider.create(request)
        second = await (await self.open()).create(request)
        assert first.id == second.id

    async def test_machines_of_the_same_name_in_two_namespaces_have_two_hosts(self, provider: Provider) -> None:
        one, two = self.a_request(), self.a_request()
        two = replace(two, identity=replace(two.identity, namespace="other", name=one.identity.name))
        hosts = [await provider.create(one), await provider.create(two)]
        assert hosts[0].id != hosts[1].id
        assert [h.id for h in await self.hosts_of(provider, two)] == [hosts[1].id]

    # Rules 2 and 3: what list and get show

    async def test_a_host_is_listed_from_the_moment_it_was_accepted(self, provider: Provider) -> None:
        request = self.a_request()
        host = await provider.create(request)
        assert [h.id for h in await self.hosts_of(provider, request)] == [host.id]

    async def test_many_hosts_are_all_listed_once(self, provider: Provider) -> None:
        requests = [self.a_request() for _ in range(5)]
        await asyncio.gather(*(provider.create(request) for request in requests))
        uids = [host.machine_uid for host in await provider.list()]
        assert sorted(uid for uid in uids if uid in self._asked) == sorted(self._asked)

    async def test_a_host_comes_up_with_provider_id_and_addresses(self, provider: Provider) -> None:
        request = self.a_request()
        await provider.create(request)
        host = await self.until_running(provider, request)
        assert host.provider_id
        assert host.addresses
        assert host.name

    async def test_a_provider_id_never_changes(self, provider: Provider) -> None:
        request = self.a_request()
        seen = {(await provider.create(request)).provider_id}
        seen.add((await self.until_running(provider, request)).provider_id)
        seen.update(h.provider_id for h in await self.hosts_of(provider, request))
        assert len(seen - {""}) == 1

    async def test_get_and_list_agree(self, provider: Provider) -> None:
        request = self.a_request()
        await provider.create(request)
        await self.until_running(provider, request)
        assert await self.hosts_of(provider, request) == [await provider.get(request.identity.machine_uid)]

    async def test_a_uid_that_nobody_has_is_no_host(self, provider: Provider) -> None:
        assert await provider.get(str(uuid.uuid4())) is None

    async def test_identity_and_spec_hash_survive_a_restart(self, provider: Provider) -> None:
        request = self.a_request()
        await provider.create(request)
        (host,) = await self.hosts_of(await self.open(), request)
        assert (host.machine_uid, host.spec_hash) == (request.identity.machine_uid, request.spec_hash)

    # Rule 4: delete

    async def test_a_deleted_host_goes(self, provider: Provider) -> None:
        request = self.a_request()
        await provider.delete(await provider.create(request))
        await self._until_gone(provider, {request.identity.machine_uid})
        assert await self.hosts_of(provider, request) == []
        assert await provider.get(request.identity.machine_uid) is None

    async def test_deleting_again_is_no_error(self, provider: Provider) -> None:
        request = self.a_request()
        host = await provider.create(request)
        await provider.delete(host)
        await provider.delete(host)
        await self._until_gone(provider, {request.identity.machine_uid})
        await provider.delete(host)

    async def test_a_deleted_host_comes_back_as_another_one(self, provider: Provider) -> None:
        request = self.a_request()
        first = await provider.create(request)
        await provider.delete(first)
        await self._until_gone(provider, {request.identity.machine_uid})
        second = await provider.create(request)
        assert first.id != second.id
        assert len(await self.hosts_of(provider, request)) == 1

    # Rule 5: update

    async def test_a_host_that_is_as_requested_is_updated_already(self, provider: Provider) -> None:
        request = self.a_request()
        await provider.create(request)
        host = await self.until_running(provider, request)
        assert await provider.update(request, host, False) == Updated()

    async def test_a_changed_host_is_updated_in_place_or_wants_to_be_replaced(self, provider: Provider) -> None:
        request = self.a_request()
        await provider.create(request)
        before = await self.until_running(provider, request)
        wanted = self.changed(request)
        answer = await self.until_decided(provider, wanted, drained=False)
        if isinstance(answer, NeedsDrain):
            assert answer.why
            (untouched,) = await self.hosts_of(provider, request)
            assert untouched.spec_hash == request.spec_hash, "changed before its pods were gone"
            answer = await self.until_decided(provider, wanted, drained=True)
        (after,) = await self.hosts_of(provider, request)
        assert (after.id, after.provider_id) == (before.id, before.provider_id)
        if isinstance(answer, NeedsReplacement):
            assert answer.why
            assert after.spec_hash == request.spec_hash
        else:
            assert answer == Updated()
            assert after.spec_hash == wanted.spec_hash

    async def test_a_finished_update_survives_a_restart(self, provider: Provider) -> None:
        request = self.a_request()
        await provider.create(request)
        await self.until_running(provider, request)
        wanted = self.changed(request)
        answer = await self.until_decided(provider, wanted, drained=True)
        (host,) = await self.hosts_of(await self.open(), request)
        assert host.spec_hash == (wanted.spec_hash if answer == Updated() else request.spec_hash)

    # Rule 6: errors

    async def test_a_config_that_can_never_work_is_refused_as_such(self, provider: Provider) -> None:
        if self.impossible_config is None:
            pytest.skip("this provider has no config that passes the schema and can never work")
        request = self.a_request(config=dict(self.impossible_config))
        with pytest.raises(ProviderError) as caught:
            await provider.create(request)
        assert caught.value.error_class in {ErrorClass.INVALID_CONFIGURATION, ErrorClass.NOT_FOUND}
        assert caught.value.message
        assert await self.hosts_of(provider, request) == []

    # Rule 8: bootstrap data

    async def test_the_registration_names_forms_of_bootstrap_data(self) -> None:
        registration = self.registration
        assert set(registration.bootstrap_formats) <= {"cloud-config", "script"}
        assert len(set(registration.bootstrap_formats)) == len(registration.bootstrap_formats)
        assert not (registration.bootstraps_itself and registration.bootstrap_formats)
        assert registration.brings_user_data(self.valid_config) in {True, False}

    async def test_a_host_gets_the_bootstrap_data_that_its_request_refers_to(self, provider: Provider) -> None:
        if not self._takes_bootstrap_data():
            pytest.skip("this provider hands no bootstrap data to its hosts")
        reference = BootstrapRef("contract-bootstrap", self.registration.bootstrap_formats[0])
        host = await provider.create(self.a_request(bootstrap=reference))
        assert await self.given_to(host) in {None, BOOTSTRAP_DATA_OF_TESTS}

    async def test_no_host_is_made_without_the_bootstrap_data_that_its_request_refers_to(
        self, provider: Provider
    ) -> None:
        if not self._takes_bootstrap_data() or not self.registration.reads_bootstrap_data:
            pytest.skip("this provider reads no bootstrap data")
        request = self.a_request(bootstrap=BootstrapRef("contract-nowhere", self.registration.bootstrap_formats[0]))
        with pytest.raises(ProviderError) as caught:
            await provider.create(request)
        assert caught.value.error_class is ErrorClass.NOT_FOUND
        assert await self.hosts_of(provider, request) == []

    def _takes_bootstrap_data(self) -> bool:
        brings = self.registration.brings_user_data(self.valid_config)
        return bool(self.registration.bootstrap_formats) and not brings

    # Rule 7: the event loop

    async def test_others_get_their_turn_during_a_call(self, provider: Provider) -> None:
        turns = 0

        async def bystander() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.ensure_future(bystander())
        await provider.create(self.a_request())
        await provider.list()
        other.cancel()
        assert turns > 0, "create and list held the event loop from beginning to end"
