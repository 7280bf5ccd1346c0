"""A cluster that its first Machine makes is reached as soon as it answers; one that was reached before can wait."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from controllers.kernel.refs import CLUSTER, Key, Ref
from nodewright.runtime.workloads.options import WorkloadOptions
from tests.runtime.country import IMPATIENT, Country
from tests.runtime.town import Town

SELDOM = replace(IMPATIENT, retry=1000.0, retry_new=0.02)


@pytest.fixture
def country(town: Town, tmp_path: Path) -> Country:
    country = Country(town, tmp_path)
    town.options = replace(town.options, workloads=SELDOM)
    return country


async def test_a_new_cluster_is_reached_as_soon_as_it_answers(country: Country) -> None:
    async with country.elsewhere("blue") as (blue,):
        endpoint = {"spec": {"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}}}
        await country.town.client.merge_patch(Ref(CLUSTER, Key("default", "blue")), endpoint)
        await blue.stop()
        async with country.town.controllers():
            await country.machine_set("blue", 1)
            await country.town.until(lambda: country.said("blue").get("status") == "False")
            await blue.start()
            await country.town.until(lambda: country.said("blue").get("status") == "True")


@pytest.mark.parametrize(
    ("is_new", "tried_for", "pause"), [(True, 0.0, 1.0), (True, 899.0, 1.0), (True, 900.0, 5.0), (False, 0.0, 5.0)]
)
def test_only_one_that_is_being_made_is_asked_often_and_not_for_ever(
    is_new: bool, tried_for: float, pause: float
) -> None:
    assert WorkloadOptions().retry_after(tried_for, is_new=is_new) == pause
