"""What hosts would be like is asked of their provider in the background, once for all who want to know."""

from __future__ import annotations

import asyncio

from controllers.kernel.view import ShapeUnknown
from nodewright.runtime.hosts.shapes import BAD_FOR, GOOD_FOR
from providers.base.contract import Shape
from providers.base.errors import ErrorClass
from tests.runtime.cloud_scene import CONFIG, Scene, error, scene

BIG = {**CONFIG, "size": 8}


@scene()
async def test_one_question_for_all_who_ask_and_the_answer_is_kept(stage: Scene) -> None:
    first = stage.directory.shape(BIG, "default")
    assert isinstance(first, ShapeUnknown)
    assert first.asked
    stage.directory.shape(dict(reversed(BIG.items())), "default")
    await stage.directory.shapes_are_known()
    assert stage.directory.shape(BIG, "default") == Shape({"cpu": "8"})
    await asyncio.sleep(GOOD_FOR / 2)
    stage.directory.shape(BIG, "default")
    assert stage.cloud.calls == ["shape"], "and nobody lists hosts for that"
    assert isinstance(stage.directory.shape(CONFIG, "default"), ShapeUnknown), "another config is another question"


@scene()
async def test_an_old_answer_is_shown_until_there_is_a_new_one(stage: Scene) -> None:
    stage.directory.shape(BIG, "default")
    await stage.directory.shapes_are_known()
    await asyncio.sleep(GOOD_FOR)
    stage.cloud.errors["shape"] = [error(ErrorClass.UNAVAILABLE)]
    assert stage.directory.shape(BIG, "default") == Shape({"cpu": "8"})
    await stage.directory.shapes_are_known()
    assert isinstance(stage.directory.shape(BIG, "default"), ShapeUnknown)


@scene()
async def test_a_failure_is_told_and_asked_again_a_while_later(stage: Scene) -> None:
    stage.cloud.errors["shape"] = [error(ErrorClass.UNAVAILABLE), RuntimeError("a bug of the provider")]
    for said in ("scripted Unavailable", "unexpected RuntimeError"):
        stage.directory.shape(BIG, "default")
        await stage.directory.shapes_are_known()
        read = stage.directory.shape(BIG, "default")
        assert isinstance(read, ShapeUnknown)
        assert said in read.why
        assert not read.asked
        await asyncio.sleep(BAD_FOR)
    stage.directory.shape(BIG, "default")
    await stage.directory.shapes_are_known()
    assert stage.directory.shape(BIG, "default") == Shape({"cpu": "8"})


@scene(call_timeout=5)
async def test_a_provider_that_never_answers_holds_up_nobody(stage: Scene) -> None:
    stage.cloud.takes = 1000
    assert isinstance(stage.directory.shape(BIG, "default"), ShapeUnknown)
    await stage.directory.shapes_are_known()
    read = stage.directory.shape(BIG, "default")
    assert isinstance(read, ShapeUnknown)
    assert "no answer within 5 s" in read.why


@scene()
async def test_a_config_that_no_provider_has_is_told_by_its_field(stage: Scene) -> None:
    read = stage.directory.shape({**CONFIG, "size": "much"}, "default")
    assert isinstance(read, ShapeUnknown)
    assert "size" in read.why
    assert not stage.cloud.calls
