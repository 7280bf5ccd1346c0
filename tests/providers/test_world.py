"""The simulated cloud: latency, quota, stock-out, moods and bad luck, all seeded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from providers.base.capabilities import Quota
from providers.base.contract import (
    HostIdentity,
    HostRequest,
    HostState,
    InProgress,
    NeedsDrain,
    NeedsReplacement,
    Updated,
    Versions,
)
from providers.base.errors import ErrorClass, ProviderError
from providers.simulated.config import API_VERSION, KIND, Cloud
from providers.simulated.provider import SimulatedProvider
from providers.simulated.world import World
from tests.providers.clocks import Clock


def request(number: int = 1, spec_hash: str = "a", namespace: str = "default", **config: Any) -> HostRequest:
    full = {"apiVersion": API_VERSION, "kind": KIND, "bootSeconds": 1, "updateSeconds": 1, "deleteSeconds": 1, **config}
    identity = HostIdentity(f"uid-{namespace}-{number}", namespace, f"m-{number}")
    return HostRequest(identity, full, spec_hash, Versions(kubelet="1.34.0"))


def world(clock: Clock | None = None, **cloud: Any) -> World:
    return World(Cloud(**cloud), clock or Clock())


def refused(call: Callable[[], object]) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        call()
    return caught.value


def test_a_host_boots_runs_and_goes() -> None:
    clock = Clock()
    cloud = world(clock)
    host = cloud.create(request())
    assert (host.state, host.addresses) == (HostState.PENDING, ())
    clock.forward(1)
    (up,) = cloud.list()
    assert up.state is HostState.RUNNING
    assert up.addresses
    cloud.delete(up.id)
    assert cloud.list()[0].state is HostState.DELETING
    clock.forward(1)
    assert cloud.list() == ()


def test_a_full_quota_of_hosts_is_told_in_numbers_and_frees_with_a_deletion() -> None:
    clock = Clock()
    cloud = world(clock, quota={"hosts": 1})
    first = cloud.create(request(1))
    error = refused(lambda: cloud.create(request(2)))
    assert (error.error_class, error.message) == (
        ErrorClass.QUOTA_EXCEEDED,
        "hosts: 1 of 1 are used, 1 more was asked for",
    )
    cloud.delete(first.id)
    clock.forward(1)
    assert cloud.create(request(2)).name == "m-2"


def test_a_quota_of_cpus_counts_the_size_of_hosts() -> None:
    cloud = world(quota={"cpus": 6})
    cloud.create(request(1, cpus=4))
    assert "cpus: 4 of 6" in refused(lambda: cloud.create(request(2, cpus=3))).message
    cloud.create(request(2, cpus=2))


def test_editing_the_quota_in_a_newer_config_raises_it() -> None:
    cloud = world(quota={"hosts": 0})
    assert cloud.create(request(1, cloud={"quota": {"hosts": 5}})).name == "m-1"


def test_a_config_that_says_nothing_of_the_cloud_changes_nothing() -> None:
    cloud = world(quota={"hosts": 0})
    assert refused(lambda: cloud.create(request())).error_class is ErrorClass.QUOTA_EXCEEDED


def test_a_zone_runs_out_of_stock_and_the_next_one_is_taken_unless_one_is_asked_for() -> None:
    cloud = world(zones={"a": 1, "b": 1})
    assert [cloud.create(request(n)).failure_domain for n in (1, 2)] == ["a", "b"]
    assert refused(lambda: cloud.create(request(3))).error_class is ErrorClass.STOCK_OUT
    assert "zone a" in refused(lambda: cloud.create(request(3, zone="a"))).message


def test_the_failure_domain_of_the_machine_is_its_zone_unless_the_config_names_one() -> None:
    cloud = world(zones={"a": 1, "b": 1})
    assert cloud.create(replace(request(1), failure_domain="b")).failure_domain == "b"
    assert cloud.create(replace(request(2, zone="a"), failure_domain="b")).failure_domain == "a"


def test_an_unknown_zone_is_a_wrong_config() -> None:
    error = refused(lambda: world(zones={"a": 1}).create(request(zone="q")))
    assert (error.error_class, error.message) == (
        ErrorClass.INVALID_CONFIGURATION,
        "there is no zone 'q'; known: a",
    )


def test_an_error_before_the_effect_made_nothing() -> None:
    cloud = world(error_rate=1)
    refused(lambda: cloud.create(request()))
    assert cloud.hosts() == ()


def test_a_lost_answer_made_the_host_all_the_same() -> None:
    cloud = world(lost_answer_rate=1)
    assert refused(lambda: cloud.create(request())).error_class is ErrorClass.TIMEOUT
    assert len(cloud.hosts()) == 1
    cloud.adjust(Cloud(lost_answer_rate=0))
    cloud.create(request())
    assert len(cloud.hosts()) == 1


def test_a_lost_answer_of_a_deletion_deleted_the_host_all_the_same() -> None:
    clock = Clock()
    cloud = world(clock)
    host = cloud.create(request())
    cloud.adjust(Cloud(lost_answer_rate=1))
    refused(lambda: cloud.delete(host.id))
    clock.forward(1)
    assert cloud.hosts() == ()


def test_an_outage_fails_every_call_until_it_is_over() -> None:
    clock = Clock()
    cloud = world(clock)
    cloud.outage(clock.now + timedelta(seconds=5))
    assert refused(cloud.list).error_class is ErrorClass.UNAVAILABLE
    clock.forward(5)
    assert cloud.list() == ()


def test_a_zombie_runs_but_never_registers() -> None:
    clock = Clock()
    cloud = world(clock)
    cloud.create(request(1, zombieRate=1))
    cloud.create(request(2))
    clock.forward(10)
    assert [host.name for host in cloud.booted()] == ["m-2"]
    assert {host.state for host in cloud.list()} == {HostState.RUNNING}


def test_a_host_may_not_boot_and_says_so() -> None:
    clock = Clock()
    cloud = world(clock)
    cloud.create(request(bootFailureRate=1))
    clock.forward(10)
    (host,) = cloud.list()
    assert (host.state, host.failure) == (HostState.FAILED, "the host did not boot")


def test_hosts_fail_after_a_while_if_the_config_says_so() -> None:
    clock = Clock()
    cloud = world(clock)
    for number in range(20):
        cloud.create(request(number, meanHoursBetweenFailures=1))
    clock.forward(3600)
    states = [host.state for host in cloud.list()]
    assert 4 <= states.count(HostState.FAILED) <= 18


def test_a_list_that_lags_does_not_show_a_new_host_yet() -> None:
    clock = Clock()
    cloud = world(clock, list_delay_seconds=5)
    cloud.create(request())
    assert cloud.list() == ()
    assert cloud.get("uid-default-1") is not None
    clock.forward(5)
    assert len(cloud.list()) == 1


def test_namesakes_of_two_namespaces_have_names_of_their_own() -> None:
    cloud = world()
    names = [cloud.create(request(1, namespace=namespace)).name for namespace in ("a", "b")]
    assert names[0] == "m-1"
    assert len(set(names)) == 2


@pytest.mark.parametrize(
    ("updates", "drained", "answer"),
    [
        ("InPlace", False, InProgress),
        ("Replace", False, NeedsReplacement),
        ("DrainThenInPlace", False, NeedsDrain),
        ("DrainThenInPlace", True, InProgress),
    ],
)
def test_each_personality_answers_an_update_in_its_way(updates: str, drained: bool, answer: type) -> None:
    cloud = world()
    host = cloud.create(request(updates=updates))
    assert isinstance(cloud.update(request(spec_hash="b", updates=updates), host.id, drained), answer)


def test_one_that_refuses_says_that_the_change_is_not_supported() -> None:
    cloud = world()
    host = cloud.create(request())
    error = refused(lambda: cloud.update(request(spec_hash="b", updates="Refuse"), host.id, True))
    assert error.error_class is ErrorClass.UNSUPPORTED_CHANGE


def test_an_update_in_place_takes_its_time_and_keeps_the_host() -> None:
    clock = Clock()
    cloud = world(clock)
    host = cloud.create(request())
    clock.forward(1)
    wanted = replace(request(spec_hash="b"), versions=Versions(kubelet="1.34.1"))
    assert cloud.update(wanted, host.id, False) == InProgress(1.0, "the host is being changed")
    (changing,) = cloud.list()
    assert (changing.state, changing.spec_hash, changing.kubelet_version) == (HostState.UPDATING, "a", "1.34.0")
    clock.forward(1)
    assert cloud.update(wanted, host.id, False) == Updated()
    (changed,) = cloud.list()
    assert (changed.state, changed.spec_hash, changed.kubelet_version) == (HostState.RUNNING, "b", "1.34.1")
    assert changed.id == host.id


def test_a_host_that_is_changing_takes_no_other_change() -> None:
    cloud = world()
    host = cloud.create(request())
    cloud.update(request(spec_hash="b"), host.id, False)
    error = refused(lambda: cloud.update(request(spec_hash="c"), host.id, False))
    assert error.error_class is ErrorClass.CONFLICT


def test_what_people_do_to_hosts_is_seen() -> None:
    clock = Clock()
    cloud = world(clock)
    for number in (1, 2, 3):
        cloud.create(request(number))
    clock.forward(1)
    cloud.break_host("uid-default-1")
    cloud.stop_host("uid-default-2")
    cloud.lose_host("uid-default-3")
    assert {host.name: host.state for host in cloud.list()} == {"m-1": HostState.FAILED, "m-2": HostState.STOPPED}


def test_equal_seeds_give_equal_luck_whatever_the_order_of_calls() -> None:
    def boots(order: list[int]) -> dict[str, object]:
        clock = Clock()
        cloud = world(clock, seed=7)
        slow: dict[str, Any] = {"bootSeconds": {"median": 5, "p99": 50}}
        return {host.name: cloud.host(host.machine_uid) for host in [cloud.create(request(n, **slow)) for n in order]}

    first, second = boots([1, 2, 3]), boots([1, 2, 3])
    assert first == second
    assert len({host.running_at for host in first.values()}) == 3  # type: ignore[attr-defined]


def test_it_says_when_something_will_change_by_itself() -> None:
    clock = Clock()
    cloud = world(clock)
    assert cloud.next_change_at() is None
    cloud.create(request(joinSeconds=2))
    for seconds in (1, 2):
        moment = cloud.next_change_at()
        assert moment == clock.now + timedelta(seconds=seconds)
        clock.forward(seconds)
    assert cloud.next_change_at() is None


def test_a_wrong_config_names_the_field_and_repeats_no_value() -> None:
    error = refused(lambda: world().create(request(cpus="hunter2")))
    assert error.error_class is ErrorClass.INVALID_CONFIGURATION
    assert error.message.startswith("cpus: ")
    assert "hunter2" not in error.message


async def test_quotas_count_what_creation_is_refused_by() -> None:
    cloud = world(quota={"cpus": 12})
    provider = SimulatedProvider(cloud)
    assert await provider.quotas() == (Quota("cpus", 0, 12),)
    cloud.create(request(cpus=8))
    assert await provider.quotas() == (Quota("cpus", 8, 12),)
    assert "cpus: 8 of 12" in refused(lambda: cloud.create(request(2, cpus=8))).message
