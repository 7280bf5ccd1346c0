"""What hosts have printed is asked of their provider in the background, once for each host."""

from __future__ import annotations

import asyncio

from nodewright.runtime.hosts.consoles import EMPTY_FOR
from providers.base.errors import ErrorClass
from tests.runtime.cloud_scene import Scene, create, error, scene, until


async def _with_a_host(stage: Scene) -> None:
    await stage.look()
    stage.directory.submit(create())
    await stage.settled()


def _asked(stage: Scene) -> int:
    return stage.cloud.calls.count("console u1")


@scene()
async def test_a_console_is_asked_for_once_and_who_waits_is_woken(stage: Scene) -> None:
    stage.cloud.printed = "\x1b[0mno route to host\nlogin: \n"
    await _with_a_host(stage)
    assert (await stage.look()).console == ""
    assert _asked(stage) == 0, "nobody needs it"
    stage.changed.clear()
    assert (await stage.look(console=True)).console == ""
    await until(lambda: "u1" in stage.changed)
    assert (await stage.look(console=True)).console == "no route to host | login:"
    stage.cloud.printed = "another"
    await asyncio.sleep(3600)
    assert (await stage.look(console=True)).console == "no route to host | login:", "what was said stays said"
    assert _asked(stage) == 1


@scene()
async def test_a_failure_or_an_empty_console_holds_up_nobody_and_is_asked_again(stage: Scene) -> None:
    await _with_a_host(stage)
    stage.cloud.errors["console"] = [error(ErrorClass.UNAVAILABLE), RuntimeError("a bug of the provider"), None]
    for _ in range(3):
        await stage.look(console=True)
        await stage.directory.consoles_are_known()
        assert (await stage.look(console=True)).console == ""
        await asyncio.sleep(EMPTY_FOR)
    stage.cloud.printed = "login:"
    await stage.look(console=True)
    await stage.directory.consoles_are_known()
    assert (await stage.look(console=True)).console == "login:"


@scene(call_timeout=5)
async def test_a_provider_that_never_answers_holds_up_nobody(stage: Scene) -> None:
    await _with_a_host(stage)
    stage.cloud.takes = 1000
    assert (await stage.look(fresh=1e6, console=True)).console == ""


@scene()
async def test_a_provider_that_shows_no_console_is_not_asked(stage: Scene) -> None:
    await _with_a_host(stage)
    stage.cloud.console = None  # type: ignore[assignment,method-assign]
    await stage.look(console=True)
    await stage.directory.consoles_are_known()
    assert (await stage.look(console=True)).console == ""
