"""What is said of a MachineClass: whether it can be used, and by how many it is."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.kernel.plan import NOTHING, Plan, Settled, Wait
from controllers.kernel.refs import Key
from controllers.kernel.view import (
    NOBODY_ASKED,
    ConfigChecked,
    ConfigProblem,
    HostReads,
    HostUnknown,
    LiveCheck,
    LoginRefused,
    NotChecked,
)
from controllers.machineclass.observe import config_of
from controllers.machineclass.reconciler import RECONCILER, names_the_same, of_machine
from providers.base.registry import Registry
from providers.simulated.provider import registration_for
from providers.simulated.worlds import Worlds
from tests.builders import FakeView, machine, machine_class
from tests.builders.objects import Builder, MachineBuilder
from tests.builders.plans import condition_of, events, patches, status_of
from tests.controllers.machine.arena import merged

REGISTRY = Registry.of(registration_for(Worlds()))
KEY = Key("default", "small")


def of_class(name: str, age: float = 3600) -> MachineBuilder:
    builder = machine(name).created(age)
    builder.spec["providerConfig"] = {"valueFrom": {"machineClass": {"name": "small"}}}
    return builder


def plan(*objects: Builder | dict[str, Any], live: LiveCheck = NOBODY_ASKED) -> Plan:
    """As the shell does it: the schemas of the installed providers are asked."""
    view = FakeView(*objects)
    need = RECONCILER.needs(KEY, view)
    found = None
    if need is not None:
        assert need.machine_uid == "", "it is nobody's host"
        found_wrong = REGISTRY.problems(need.config or {})
        problems = tuple(ConfigProblem(f"{need.config_path}.{p.path}", p.message) for p in found_wrong)
        found = HostReads(HostUnknown(""), problems, live=live if need.live and not problems else NOBODY_ASKED)
    observed = RECONCILER.observe(KEY, view, found)
    return NOTHING if observed is None else RECONCILER.plan(observed)


def test_a_class_that_is_in_order_says_so_once() -> None:
    body = machine_class("small")
    found = plan(body, of_class("a"), of_class("b"))
    assert condition_of(found, "Accepted")["status"] == "True"
    assert status_of(found)["machines"] == 2
    written = merged(body.build(), {"status": status_of(found)})
    assert plan(written, of_class("a"), of_class("b")) == NOTHING


FAULTS: dict[str, tuple[Any, str, str]] = {
    "a field of a wrong type": ({"cpus": "many"}, "InvalidConfiguration", "providerConfig.cpus"),
    "an unknown field": ({"cups": 2}, "InvalidConfiguration", "cups"),
    "a kind that no provider has": ({"kind": "Elsewhere"}, "ProviderUnknown", "no installed provider"),
}


@pytest.mark.parametrize(("config", "reason", "words"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_told_with_its_field(config: dict[str, Any], reason: str, words: str) -> None:
    found = plan(machine_class("small").provider_config(**config))
    said = condition_of(found, "Accepted")
    assert (said["status"], said["reason"]) == ("False", reason)
    assert words in said["message"]
    assert events(found) == [said["message"]]


@pytest.mark.parametrize("config", [None, {}, {"apiVersion": "v1"}, {"kind": "K", "apiVersion": 7}, "text"])
def test_one_without_a_configuration_is_at_fault(config: Any) -> None:
    body = machine_class("small")
    body.body["providerConfig"] = config
    assert "must be an object with apiVersion and kind" in condition_of(plan(body), "Accepted")["message"]


LIVE: dict[str, tuple[LiveCheck, tuple[str, str, str] | None]] = {
    "all is there": (ConfigChecked(), ("True", "Found", "")),
    "something is missing": (
        ConfigChecked((ConfigProblem("providerConfig.image", "there is no image x"),)),
        ("False", "InvalidConfiguration", "providerConfig.image: there is no image x"),
    ),
    "the login is refused": (LoginRefused("no such user"), ("False", "Unauthorized", "no such user")),
    "the cloud is down": (NotChecked("no answer"), None),
    "it is being asked": (NotChecked("soon", asked=True), None),
}


@pytest.mark.parametrize(("live", "wanted"), LIVE.values(), ids=LIVE.keys())
def test_what_its_provider_finds_in_its_cloud_is_a_condition_of_its_own(
    live: LiveCheck, wanted: tuple[str, str, str] | None
) -> None:
    body = machine_class("small")
    found = plan(body, live=live)
    assert condition_of(found, "Accepted")["status"] == "True"
    said = condition_of(found, "ConfigurationValid")
    assert (wanted is None) is (said == {})
    assert wanted is None or (said["status"], said["reason"], said["message"]) == wanted
    assert isinstance(found.outcome, Settled if live == ConfigChecked() else Wait), "what is missing may come"
    written = merged(body.build(), {"status": status_of(found)})
    assert list(plan(written, live=live).actions()) == [], "said once"
    assert list(plan(written, live=NotChecked("no answer")).actions()) == [], "and kept while nobody can say"


def test_a_fault_that_its_schema_finds_takes_the_place_of_what_is_missing() -> None:
    body = machine_class("small")
    missing = ConfigChecked((ConfigProblem("providerConfig.image", "there is no image x"),))
    written = merged(body.build(), {"status": status_of(plan(body, live=missing))})
    written["providerConfig"]["cpus"] = "many"
    found = plan(written, live=missing)
    assert condition_of(found, "Accepted")["status"] == "False"
    assert condition_of(found, "ConfigurationValid") == {}


def test_a_count_waits_until_its_machines_rest_and_a_fault_does_not() -> None:
    body = machine_class("small")
    written = merged(body.build(), {"status": status_of(plan(body))})
    waiting = plan(written, of_class("new", 0.5))
    assert patches(waiting) == {}
    assert isinstance(waiting.outcome, Wait)
    written["providerConfig"]["cpus"] = "many"
    written["metadata"]["generation"] = 2
    assert condition_of(plan(written, of_class("new", 0.5)), "Accepted")["status"] == "False"


def test_nothing_is_said_of_one_that_is_paused_or_going_or_gone() -> None:
    assert plan(machine_class("small").annotated("nodewright.dev/paused")) == NOTHING
    assert plan(machine_class("small").deleting()) == NOTHING
    assert plan() == NOTHING


def test_the_configuration_may_stand_in_value_as_in_a_machine() -> None:
    body = machine_class("small").build()
    config = body.pop("providerConfig")
    assert config_of({**body, "providerSpec": {"value": config}}) == ("providerSpec.value", config)


def test_only_machines_that_come_go_or_choose_another_class_wake_it() -> None:
    one = of_class("a")
    assert list(of_machine(one.build(), FakeView())) == [KEY]
    assert names_the_same(one.build(), of_class("a").ready().build())
    assert not names_the_same(one.build(), machine("a").build())
