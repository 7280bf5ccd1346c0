"""What a provider finds missing in its cloud is asked once for all Machines of a config, and told to them."""

from __future__ import annotations

import asyncio
from typing import Any

from controllers.kernel.refs import MACHINE, MACHINE_CLASS, MACHINE_SET
from controllers.kernel.view import (
    NOBODY_ASKED,
    ConfigChecked,
    ConfigProblem,
    HostNeed,
    LiveCheck,
    LoginRefused,
    NotChecked,
)
from nodewright.runtime.hosts.live_checks import ASKED, GOOD_FOR
from providers.base.contract import Problem
from providers.base.errors import ErrorClass, ProviderError
from tests.builders.objects import SIMULATED
from tests.runtime.cloud_scene import CONFIG, Scene, error, scene, until
from tests.runtime.town import Town

NO_IMAGE = Problem("image", "there is no image x")


async def live(stage: Scene, uid: str = "u1", **config: Any) -> LiveCheck:
    return (await stage.look(uid, 1000.0, config={**CONFIG, **config}, live=True)).live


async def answered(stage: Scene, uid: str = "u1", **config: Any) -> LiveCheck:
    """What is known once nobody is being asked any more."""
    for _ in range(10_000):
        if (said := await live(stage, uid, **config)) != ASKED:
            return said
        await asyncio.sleep(0.01)
    raise AssertionError("its provider never answers")


@scene()
async def test_nobody_asks_who_does_not_want_to_know(stage: Scene) -> None:
    assert (await stage.look()).live == NOBODY_ASKED
    assert stage.cloud.checks == 0


@scene()
async def test_one_question_for_all_machines_of_a_config(stage: Scene) -> None:
    for number in range(50):
        assert await live(stage, f"u{number}") == ASKED
    for number in range(50):
        assert await answered(stage, f"u{number}") == ConfigChecked()
    assert stage.cloud.checks == 1
    await answered(stage, "u1", size=2)
    assert stage.cloud.checks == 2, "another config is another question"


@scene()
async def test_problems_are_told_with_their_path_below_spec_and_wake_those_who_asked(stage: Scene) -> None:
    stage.cloud.lacks = (NO_IMAGE,)
    await live(stage, "u1")
    await live(stage, "u2")
    stage.changed.clear()
    await until(lambda: stage.changed == ["u1", "u2"])
    found = ConfigChecked((ConfigProblem("providerConfig.value.image", NO_IMAGE.message),))
    assert await live(stage, "u1") == found


@scene()
async def test_a_good_answer_wakes_nobody_unless_the_last_one_was_bad(stage: Scene) -> None:
    await live(stage)
    stage.changed.clear()
    await answered(stage)
    assert stage.changed == []
    stage.cloud.lacks = (NO_IMAGE,)
    await asyncio.sleep(GOOD_FOR)
    assert await live(stage) == ConfigChecked(), "an old answer is shown until there is a new one"
    await until(lambda: stage.changed == ["u1"])
    stage.cloud.lacks = ()
    await asyncio.sleep(GOOD_FOR)
    assert await live(stage) != ConfigChecked()
    await until(lambda: stage.changed == ["u1", "u1"])
    assert await live(stage) == ConfigChecked()


@scene()
async def test_errors_say_what_they_can_and_nothing_more(stage: Scene) -> None:
    said = {
        ErrorClass.UNAUTHORIZED: LoginRefused("scripted Unauthorized"),
        ErrorClass.NOT_FOUND: ConfigChecked((ConfigProblem("providerConfig.value", "scripted NotFound"),)),
        ErrorClass.UNAVAILABLE: NotChecked("scripted Unavailable"),
    }
    for error_class, wanted in said.items():
        stage.cloud.errors["validate"] = [error(error_class)]
        assert await answered(stage, size=len(error_class)) == wanted
    stage.cloud.errors["validate"] = [RuntimeError("a bug of the provider")]
    assert await answered(stage, size=99) == NotChecked("unexpected RuntimeError")


@scene(call_timeout=5)
async def test_a_provider_that_never_answers_holds_up_nobody(stage: Scene) -> None:
    assert (await stage.look()).live == NOBODY_ASKED
    stage.cloud.takes = 1000
    assert await live(stage) == ASKED
    assert await answered(stage) == NotChecked("no answer within 5 s")


@scene()
async def test_what_a_provider_repeats_of_its_configs_secrets_is_taken_out(stage: Scene) -> None:
    stage.cloud.lacks = (Problem("password", "hunter22 is no password"),)
    (found,) = (await answered(stage, password="hunter22")).problems  # type: ignore[union-attr]
    assert "hunter22" not in found.message
    stage.cloud.errors["validate"] = [ProviderError(ErrorClass.UNAUTHORIZED, "hunter23 is refused")]
    refused = await answered(stage, password="hunter23")
    assert isinstance(refused, LoginRefused)
    assert "hunter23" not in refused.why


@scene()
async def test_a_class_asks_though_it_has_no_host(stage: Scene) -> None:
    stage.cloud.lacks = (NO_IMAGE,)
    need = HostNeed("", CONFIG, float("inf"), config_path="providerConfig", namespace="default", live=True)

    def read() -> LiveCheck:
        reads = stage.directory.look(need)
        assert reads is not None
        return reads.live

    assert read() == ASKED
    await until(lambda: read() != ASKED)
    assert read() == ConfigChecked((ConfigProblem("providerConfig.image", NO_IMAGE.message),))
    assert stage.cloud.lists() == 0


def said(obj: Any) -> dict[str, Any]:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((dict(c) for c in conditions if c["type"] == "ConfigurationValid"), {})


async def test_machines_say_which_field_names_what_is_not_there_and_when_it_is(town: Town) -> None:
    cloud = {"name": "zoned", "zones": {"a": 10}, "quota": {"hosts": 0}}
    async with town.controllers():
        await town.machine_set("ms", 2, zone="b", cloud=cloud)
        await town.until(lambda: [said(one).get("status") for one in town.objects(MACHINE)] == ["False"] * 2)
        for one in town.objects(MACHINE):
            assert said(one)["reason"] == "InvalidConfiguration"
            assert said(one)["message"].startswith("spec.providerConfig.value.zone: there is no zone 'b'")


async def test_a_class_says_whether_its_provider_finds_what_it_names(town: Town) -> None:
    body = {
        "apiVersion": MACHINE_SET.api_version,
        "kind": "MachineClass",
        "metadata": {"name": "small", "namespace": "default"},
        "providerConfig": {**SIMULATED, "zone": "b", "cloud": {"name": "zoned", "zones": {"a": 10}}},
    }
    async with town.controllers():
        await town.client.create(MACHINE_CLASS, body)
        await town.until(lambda: said(town.objects(MACHINE_CLASS)[0]).get("status") == "False")
        assert "providerConfig.zone" in said(town.objects(MACHINE_CLASS)[0])["message"]
        good = {"metadata": {"name": "good", "namespace": "default"}, "providerConfig": dict(SIMULATED)}
        await town.client.create(MACHINE_CLASS, {**body, **good})
        await town.until(lambda: said(town.objects(MACHINE_CLASS)[0]).get("status") == "True")
