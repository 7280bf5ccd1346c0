"""How much of an account's limits is used: asked of its provider once a minute, published in the Lease."""

from __future__ import annotations

import asyncio

from api.names import LEASE_FINDINGS_ANNOTATION
from nodewright.runtime.fleet.findings import MOST, Finder, Usage, findings_of
from nodewright.runtime.hosts.quotas import GOOD_FOR
from providers.base.capabilities import Quota
from providers.base.errors import ErrorClass
from tests.runtime.cloud_scene import Scene, create, error, scene


def published(finder: Finder) -> tuple[Usage, ...]:
    return findings_of({"metadata": {"annotations": {LEASE_FINDINGS_ANNOTATION: finder.text()}}}).quotas


async def _known(stage: Scene) -> Finder:
    """A Finder of a scene whose one account has answered once."""
    await stage.look()
    finder = Finder("0.1.0", stage.directory, stage.clock)
    assert published(finder) == (), "nobody has asked yet"
    await asyncio.sleep(1)
    return finder


@scene()
async def test_an_account_is_asked_once_a_minute_and_the_fullest_limit_comes_first(stage: Scene) -> None:
    stage.cloud.limits = (Quota("instances", 3, 20), Quota("cores", 38, 40), Quota("ram", 1024, 51200, "MiB"))
    finder = await _known(stage)
    assert [str(usage).partition(" ")[2] for usage in published(finder)] == [
        "cores 38 of 40",
        "instances 3 of 20",
        "ram 1024 of 51200 MiB",
    ]
    stage.cloud.limits = (Quota("instances", 4, 20),)
    for _ in range(20):
        finder.text()
    assert stage.cloud.calls.count("quotas") == 1
    await asyncio.sleep(GOOD_FOR)
    finder.text()
    await asyncio.sleep(1)
    assert [usage.used for usage in published(finder)] == [4]


@scene()
async def test_numbers_of_before_are_not_shown_when_an_account_does_not_answer(stage: Scene) -> None:
    stage.cloud.limits = (Quota("instances", 3, 20),)
    finder = await _known(stage)
    assert len(published(finder)) == 1
    stage.cloud.errors["quotas"] = [error(ErrorClass.UNAVAILABLE), RuntimeError("a bug of the provider")]
    for _ in range(2):
        await asyncio.sleep(GOOD_FOR)
        finder.text()
        await asyncio.sleep(1)
        assert published(finder) == ()


@scene()
async def test_an_account_whose_calls_pause_is_not_asked(stage: Scene) -> None:
    await stage.look()
    stage.cloud.errors["create"] = [error(ErrorClass.UNAUTHORIZED)]
    stage.directory.submit(create())
    await stage.settled()
    assert stage.directory.paused()
    assert stage.directory.quotas() == {}
    await asyncio.sleep(1)
    assert "quotas" not in stage.cloud.calls


@scene()
async def test_a_provider_without_quotas_is_not_asked(stage: Scene) -> None:
    stage.cloud.quotas = None  # type: ignore[assignment,method-assign]
    assert published(await _known(stage)) == ()


@scene()
async def test_many_limits_are_bounded(stage: Scene) -> None:
    stage.cloud.limits = tuple(Quota(f"r{n}", n, 1000) for n in range(100))
    found = published(await _known(stage))
    assert [usage.used for usage in found] == list(range(99, 99 - MOST, -1))
