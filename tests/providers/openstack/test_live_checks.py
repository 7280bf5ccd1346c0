"""What the provider finds missing in its cloud: each with its field, all at once, and for few requests."""

from __future__ import annotations

from typing import Any

import pytest

from providers.base.errors import ErrorClass, ProviderError
from tests.providers.openstack.fake_cloud import PASSWORD, FakeCloud, Mishap
from tests.providers.openstack.scene import CONFIG, provider_of, provider_with

MISSING: dict[str, tuple[dict[str, Any], str]] = {
    "flavor": ({"flavor": "m1.none"}, "flavor"),
    "a flavor that is large enough": ({"flavor": {"filter": {"minCPUs": 4000}}}, "flavor"),
    "image": ({"image": "of-yesterday"}, "image"),
    "network": ({"ports": [{"network": "none"}]}, "ports[0].network"),
    "subnet": ({"ports": [{"network": "nodes", "fixedIPs": [{"subnet": "none"}]}]}, "ports[0].fixedIPs[0].subnet"),
    "a port's security group": (
        {"ports": [{"network": "nodes", "securityGroups": ["none"]}]},
        "ports[0].securityGroups[0]",
    ),
    "external network": (
        {"ports": [{"network": "nodes", "floatingIP": {"network": "none"}}]},
        "ports[0].floatingIP.network",
    ),
    "security group": ({"securityGroups": ["nodes", "none"]}, "securityGroups[1]"),
    "server group": ({"serverGroup": "none"}, "serverGroup"),
    "key pair": ({"keyPair": "none"}, "keyPair"),
    "zone": ({"availabilityZones": ["az1", "az9"]}, "availabilityZones[1]"),
    "user data": ({"userData": {"secretName": "none"}}, "userData.secretName"),
    "key of user data": ({"userData": {"secretName": "data", "key": "none"}}, "userData.key"),
}


@pytest.mark.parametrize(("change", "path"), MISSING.values(), ids=MISSING.keys())
async def test_what_is_missing_is_named_by_its_field(cloud: FakeCloud, change: dict[str, Any], path: str) -> None:
    [problem] = await provider_of(cloud).validate({**CONFIG, **change})
    assert problem.path == path
    assert problem.message


async def test_all_that_is_missing_is_told_at_once(cloud: FakeCloud) -> None:
    config = {**CONFIG, "flavor": "m1.none", "image": "of-yesterday", "ports": [{"network": "none"}]}
    found = await provider_of(cloud).validate(config)
    assert [problem.path for problem in found] == ["flavor", "image", "ports[0].network"]


async def test_a_config_of_which_all_is_there_has_no_problems(cloud: FakeCloud) -> None:
    port = {"network": "nodes", "fixedIPs": [{"subnet": "nodes"}], "floatingIP": {"network": "public"}}
    whole = {
        **CONFIG,
        "ports": [{**port, "securityGroups": ["nodes"]}],
        "serverGroup": "spread",
        "keyPair": "nodes",
        "availabilityZones": ["az1", "az2"],
        "userData": {"secretName": "data"},
    }
    assert await provider_of(cloud).validate(whole) == ()


async def test_a_missing_login_is_told_once_and_not_for_each_name() -> None:
    [problem] = await provider_with().validate(CONFIG)
    assert problem.path == "cloud.secretName"
    assert "cloud does not exist" in problem.message


async def test_a_login_that_the_cloud_refuses_says_nothing_of_the_config(cloud: FakeCloud) -> None:
    wrong = cloud.login().replace(PASSWORD.encode(), b"wrong-password")
    with pytest.raises(ProviderError) as caught:
        await provider_with(cloud={"clouds.yaml": wrong}).validate(CONFIG)
    assert caught.value.error_class is ErrorClass.UNAUTHORIZED
    assert "wrong-password" not in str(caught.value)


async def test_a_cloud_that_does_not_answer_says_nothing_of_the_config(cloud: FakeCloud) -> None:
    cloud.mishaps += [Mishap("GET", "/images", status=503)] * 3
    with pytest.raises(ProviderError) as caught:
        await provider_of(cloud).validate(CONFIG)
    assert caught.value.error_class is ErrorClass.UNAVAILABLE


async def test_looking_again_asks_for_nothing_that_is_known(cloud: FakeCloud) -> None:
    provider, config = provider_of(cloud), {**CONFIG, "availabilityZones": ["az1", "az2"]}
    await provider.validate(config)
    asked = cloud.asked.copy()
    assert sum(asked.values()) == 4, "flavors, images, networks, zones"
    await provider.validate(config)
    assert cloud.asked == asked
