"""What a Machine says of a config whose image, login, … its provider does not find: only what is wrong, and in no
write of its own if it can be helped."""

from __future__ import annotations

from typing import Any

from controllers.kernel.refs import Key
from controllers.kernel.view import ConfigChecked, ConfigProblem, LoginRefused, NotChecked
from providers.simulated.config import Cloud, Quota
from tests.builders import machine
from tests.controllers.machine.arena import Arena

TYPE = "ConfigurationValid"
NO_IMAGE = ConfigChecked((ConfigProblem("providerConfig.value.image", "there is no image x"),))
NOBODY_CAN_SAY = NotChecked("the cloud does not answer")


def types(arena: Arena, key: Key) -> list[str]:
    conditions: list[Any] = (arena.machine(key).get("status") or {}).get("conditions") or []
    return [str(one["type"]) for one in conditions]


def full() -> Arena:
    """A cloud in which no host can be made for now."""
    return Arena(cloud=Cloud(name="arena", quota=Quota(hosts=0)))


def test_of_a_config_that_is_good_nothing_is_said_and_nothing_written_for_it() -> None:
    plain, checked = Arena(), Arena(live=ConfigChecked())
    for arena in (plain, checked):
        key = arena.apply(machine("m-1"))
        arena.run(key)
        assert arena.condition(key, "Ready")["status"] == "True"
        assert TYPE not in types(arena, key)
    assert plain.writes == checked.writes


def test_what_is_missing_is_said_before_the_first_try_is_over() -> None:
    arena = Arena(live=NO_IMAGE)
    key = arena.apply(machine("m-1"))
    arena.round(key)
    said = arena.condition(key, TYPE)
    assert (said["status"], said["reason"]) == ("False", "InvalidConfiguration")
    assert said["message"] == "spec.providerConfig.value.image: there is no image x"


def test_it_is_said_once_and_is_never_terminal() -> None:
    arena = full()
    arena.live = NO_IMAGE
    key = arena.apply(machine("m-1"))
    arena.round(key)
    arena.round(key)
    writes = arena.writes.copy()
    for _ in range(3):
        arena.forward(1)
        arena.round(key)
    assert arena.writes == writes
    assert "errorReason" not in arena.machine(key)["status"], "an image may be there tomorrow"


def test_a_refused_login_is_told_though_nothing_is_known_of_the_hosts() -> None:
    arena = Arena(cloud_answers=False, live=LoginRefused("no such user"))
    key = arena.apply(machine("m-1"))
    arena.round(key)
    said = arena.condition(key, TYPE)
    assert (said["status"], said["reason"], said["message"]) == ("False", "Unauthorized", "no such user")


def test_it_stays_while_nobody_can_say_and_turns_when_it_is_there() -> None:
    arena = full()
    arena.live = NO_IMAGE
    key = arena.apply(machine("m-1"))
    arena.round(key)
    arena.live = NOBODY_CAN_SAY
    arena.forward(60)
    arena.round(key)
    assert arena.condition(key, TYPE)["status"] == "False"
    arena.live = ConfigChecked()
    arena.forward(60)
    arena.round(key)
    assert (arena.condition(key, TYPE)["status"], arena.condition(key, TYPE)["reason"]) == ("True", "Found")


def test_a_host_that_was_made_proves_that_all_was_there_whatever_the_last_look_said() -> None:
    arena = Arena(live=NO_IMAGE)
    key = arena.apply(machine("m-1"))
    arena.run(key)
    assert arena.condition(key, "Ready")["status"] == "True"
    assert arena.condition(key, TYPE)["status"] == "True"
    writes = arena.writes.copy()
    arena.forward(600)
    arena.run(key)
    assert arena.writes == writes, "a Machine that runs is not asked about any more"


def test_its_schemas_word_goes_first() -> None:
    arena = full()
    arena.live = NO_IMAGE
    key = arena.apply(machine("m-1"))
    arena.round(key)
    arena.edit(key, {"spec": {"providerConfig": {"value": {"cpus": "many"}}}})
    arena.round(key)
    assert TYPE not in types(arena, key)
