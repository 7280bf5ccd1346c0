"""A misspelt field is kept by the API server and has no effect: the object says so, with the name that is meant."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

from hypothesis import given

from api.conditions import FIELDS_KNOWN
from api.misspelt import MOST, near_misses
from controllers.kernel.conditions import find
from controllers.kernel.plan import Plan
from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_SET, Key
from nodewright.runtime.cache.shapes import levels_of
from nodewright.runtime.writes.failing import is_own_note, pointing_out
from tests.builders import NOW, hostile, machine, machine_set
from tests.runtime.shell_stage import Stage, story

MS = Key("default", "ms")


def misspelt() -> dict[str, Any]:
    body = machine_set("ms").build()
    body["spec"]["template"]["spec"]["verions"] = {"kubelet": "1.34.4"}
    return body


def condition_of(s: Stage) -> Any:
    return find((s.cache.stores[MACHINE_SET].get(MS) or {}).get("status", {}).get("conditions"), FIELDS_KNOWN)


def test_near_misses_are_named_with_what_is_meant() -> None:
    body = misspelt()
    body["spec"]["template"]["spec"]["nodeDrainTimout"] = "5m"
    found = [str(miss) for miss in near_misses(body, levels_of(MACHINE_SET))]
    assert found == [
        "spec.template.spec.nodeDrainTimout is not a known field; did you mean nodeDrainTimeout?",
        "spec.template.spec.verions is not a known field; did you mean versions?",
    ]


def test_a_field_one_level_too_high_is_named_with_its_place() -> None:
    body = machine("m").build()
    body["spec"].update(lables={"pool": "web"}, kubelet="1.34.4")
    found = [str(miss) for miss in near_misses(body, levels_of(MACHINE))]
    assert found == [
        "spec.kubelet is not a known field; did you mean versions.kubelet?",
        "spec.lables is not a known field; did you mean metadata.labels?",
    ]


def test_a_field_of_an_older_family_is_no_near_miss() -> None:
    body = machine("m").build()
    body["spec"].update(configSource={}, roles=["Master"], bootstrapTokenOfMine=1)
    assert near_misses(body, levels_of(MACHINE)) == ()


def test_a_hundred_thousand_fields_are_bounded() -> None:
    body = machine("m").build()
    body["spec"].update({f"version{n}": n for n in range(100_000)})
    assert len(near_misses(body, levels_of(MACHINE))) == MOST


@given(hostile.json)
def test_any_spec_can_be_read(spec: Any) -> None:
    for kind in (MACHINE, MACHINE_SET, CLUSTER):
        assert isinstance(near_misses({"metadata": {"name": "x"}, "spec": spec}, levels_of(kind)), tuple)


@story
async def test_the_object_says_it_once_and_takes_it_back_once_it_is_corrected(stage: Any) -> None:
    s = stage(lambda _key, _hosts: Plan())
    s.show(MACHINE_SET, misspelt(), "ADDED")
    await s.quiet()
    said = condition_of(s)
    assert (said["status"], said["reason"]) == ("False", "UnknownField")
    assert "spec.template.spec.verions is not a known field; did you mean versions?" in said["message"]
    before = s.reconciles
    await asyncio.sleep(100)
    assert s.reconciles == before
    corrected = copy.deepcopy(s.cache.stores[MACHINE_SET].get(MS))
    corrected["spec"]["template"]["spec"].pop("verions")
    corrected["metadata"]["resourceVersion"] = "5000"
    s.api.version = 6000
    s.show(MACHINE_SET, corrected)
    await s.quiet()
    assert condition_of(s) is None


def test_what_a_set_makes_does_not_repeat_it() -> None:
    body = machine("m").of(machine_set("ms")).build()
    body["spec"]["verions"] = {}
    assert pointing_out(MACHINE, body, NOW) == ()


def test_writing_it_wakes_nobody() -> None:
    old = misspelt()
    new = copy.deepcopy(old)
    new.setdefault("status", {})["conditions"] = [{"type": FIELDS_KNOWN, "status": "False"}]
    old.setdefault("status", {})["conditions"] = []
    assert is_own_note(old, new)
