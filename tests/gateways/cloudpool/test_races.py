"""A Machine changes between the gateway's look and the mark: the mark is refused, and the request is decided anew."""

from __future__ import annotations

import pytest

from api import names
from controllers.kernel.refs import MACHINE, Key, Ref
from tests.gateways.cloudpool.test_interrupted import populate
from tests.gateways.cloudpool.test_server import served
from tests.gateways.race import Race
from tests.runtime.town import Town

MARK = names.DELETE_MACHINE_ANNOTATION
PROTECTED = {names.CLOUDPOOL_MEMBERSHIP_ANNOTATION: '{"active":true,"evictable":false}'}


async def annotations(town: Town, name: str) -> dict[str, str]:
    found = await town.client.get(MACHINE, Key("default", name))
    return found["metadata"].get("annotations") or {}


async def test_a_machine_that_another_client_protects_meanwhile_is_not_terminated(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    await populate(town)
    async with served(town) as client:
        protects = {"metadata": {"annotations": PROTECTED}}
        race = Race(monkeypatch, "cloudpool", MACHINE, lambda ref: town.client.merge_patch(ref, protects))
        status, body = await client("POST", "/pool/terminate", {"machineId": "a", "decrementDesiredSize": True})
        assert race.lost == Ref(MACHINE, Key("default", "a"), race.lost.uid if race.lost else "")
        assert status == 502, body
        assert "cannot be evicted" in body["message"]
        assert await client.replicas() == 2
        assert MARK not in await annotations(town, "a")


async def test_a_smaller_size_takes_another_machine_than_one_that_is_protected_meanwhile(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    await populate(town)
    async with served(town) as client:
        protects = {"metadata": {"annotations": PROTECTED}}
        race = Race(monkeypatch, "cloudpool", MACHINE, lambda ref: town.client.merge_patch(ref, protects))
        await client.does("/pool/size", {"desiredSize": 1})
        assert race.lost is not None
        (other,) = {"a", "b"} - {race.lost.key.name}
        assert await client.replicas() == 1
        assert MARK not in await annotations(town, race.lost.key.name)
        assert (await annotations(town, other))[MARK] == "nodewright-cloudpool"


async def test_a_machine_that_only_changes_its_status_goes_all_the_same(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    await populate(town)
    async with served(town) as client:
        race = Race(
            monkeypatch, "cloudpool", MACHINE, lambda ref: town.client.patch_status(ref, {"phase": "Provisioned"})
        )
        await client.does("/pool/terminate", {"machineId": "a", "decrementDesiredSize": True})
        assert race.lost is not None
        assert await client.replicas() == 1
        assert (await annotations(town, "a"))[MARK] == "nodewright-cloudpool"
