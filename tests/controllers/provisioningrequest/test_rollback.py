"""What was made for a request goes again, all of it and nothing else; and nothing is concluded in the dark."""

from __future__ import annotations

from datetime import timedelta

import pytest

from api import names
from tests.controllers.provisioningrequest.office import Office


@pytest.fixture
def office() -> Office:
    office = Office()
    office.template("big")
    return office


def test_two_that_are_rolled_back_at_once_give_back_all_that_both_made(office: Office) -> None:
    office.fleet.group("a", most=6)
    office.request("one", ("big", 2))
    office.request("two", ("big", 3))
    office.round()
    assert office.fleet.size("a") == 5
    office.make("a", fails=5)
    office.round()
    office.round()
    assert office.fleet.size("a") == 0


def test_while_nobody_knows_what_its_nodes_are_like_nothing_is_rolled_back(office: Office) -> None:
    """As after a restart, before providers have answered."""
    key = f"{names.CAPACITY_PREFIX}cpu"
    annotations = office.fleet.group("a")["metadata"]["annotations"]
    office.request("job", ("big", 2))
    office.round()
    known = annotations.pop(key)
    assert not office.plan().steps
    annotations[key] = known
    office.live(2)
    assert office.said("job") == ("True", "CapacityIsProvisioned")


def test_while_its_group_is_paused_nothing_is_concluded(office: Office) -> None:
    meta = office.fleet.group("a")["metadata"]
    office.request("job", ("big", 2))
    office.round()
    meta["annotations"][names.CAPI_PAUSED_ANNOTATION] = "true"
    assert not office.plan().steps
    del meta["annotations"][names.CAPI_PAUSED_ANNOTATION]
    office.live(2)
    assert office.said("job") == ("True", "CapacityIsProvisioned")


def test_a_rollback_that_a_pause_interrupts_goes_on_after_it(office: Office) -> None:
    meta = office.fleet.group("a")["metadata"]
    office.request("job", ("big", 2))
    office.round()
    office.make("a", fails=2)
    office.round()
    assert office.said("job")[1] == "RollingBack"
    meta["annotations"][names.CAPI_PAUSED_ANNOTATION] = "true"
    office.round()
    assert office.said("job")[1] == "RollingBack"
    del meta["annotations"][names.CAPI_PAUSED_ANNOTATION]
    office.round()
    assert office.fleet.size("a") == 0


def test_marks_of_a_request_that_is_deleted_are_taken_back(office: Office) -> None:
    office.fleet.group("a")
    office.request("job", ("big", 2))
    office.round()
    office.make("a", fails=1)
    office.fleet.group("b", most=0)
    office.round()
    office.round(actions=1)
    marked = [m for m in office.fleet.machines.values() if m["metadata"]["annotations"]]
    assert marked
    del office.requests["job"]
    office.round()
    assert not [m for m in office.fleet.machines.values() if m["metadata"]["annotations"]]


def test_nothing_is_done_while_too_many_nodes_are_unready(office: Office) -> None:
    office.fleet.group("a", most=20)["spec"]["replicas"] = 8
    office.fleet.settle()
    office.request("job", ("big", 10))
    office.fleet.now += timedelta(hours=1)
    for name in sorted(office.fleet.nodes)[:5]:
        office.fleet.nodes[name]["status"]["conditions"] = [{"type": "Ready", "status": "False", "reason": "Down"}]
    assert not office.plan().steps
    assert any("are not ready" in note for note in office.plan().notes)


def test_a_machine_that_was_protected_meanwhile_is_not_given_back_and_nobody_waits_for_it(office: Office) -> None:
    office.fleet.group("a", most=6)
    office.request("job", ("big", 3))
    office.round()
    office.make("a", fails=3)
    office.round()
    kept = sorted(office.fleet.machines)[0]
    body = office.fleet.machines[kept]
    said = {names.CLOUDPOOL_MEMBERSHIP_ANNOTATION: '{"active":true,"evictable":false}'}
    office.fleet.machines[kept] = {**body, "metadata": {**body["metadata"], "annotations": said}}
    office.round()
    assert office.fleet.size("a") == 1
    assert names.DELETE_MACHINE_ANNOTATION not in said
    for name in sorted(office.fleet.machines):
        if name != kept:
            del office.fleet.machines[name]
    office.round()
    assert office.said("job")[1] != "RollingBack"
