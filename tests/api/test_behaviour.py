"""Each field of a Machine's spec declares what a change of it does, and everything else follows from that."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from api.behaviour import Behaviour, Change, Fields
from api.declared import MACHINE_SPEC
from api.machine import MachineSpec
from controllers.kernel.template import rollout_part, template_hash
from controllers.machine.host_spec import desired_host
from controllers.machineset.propagation import given
from hack import apidocs, declared
from tests.builders import FakeView, machine


class Extended(MachineSpec):
    """A copy of the model, to which somebody has added fields."""

    image_pull_policy: Annotated[str | None, Behaviour(Change.REVISION)] = None
    """Makes a new revision."""
    boot_disk: Annotated[str | None, Behaviour(Change.HOST)] = None
    """Makes the host another one."""
    shutdown_timeout: Annotated[str | None, Behaviour(Change.IN_PLACE, timeout=True)] = None
    """Is changed in place."""
    serial_number: Annotated[str | None, Behaviour(Change.OWN)] = None
    """Belongs to one Machine."""


class Forgotten(MachineSpec):
    """A copy with a field that says nothing about itself."""

    boot_disk: str | None = None
    """Something new."""


ADDED = {"imagePullPolicy": "a", "bootDisk": "b", "shutdownTimeout": "5m", "serialNumber": "c"}


@pytest.fixture(scope="module")
def extended() -> Fields:
    """What ``make generate`` would write for the copy, loaded as Python loads it."""
    namespace: dict[str, Any] = {}
    exec(declared.module(Extended), namespace)
    fields = namespace["MACHINE_SPEC"]
    assert isinstance(fields, Fields)
    return fields


def test_the_generated_module_is_that_of_the_models() -> None:
    assert declared.fields_of(MachineSpec).behaviours == MACHINE_SPEC.behaviours


def test_a_field_without_a_behaviour_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"Forgotten\.bootDisk has no behaviour: declare it as Annotated"):
        declared.fields_of(Forgotten)


def test_a_field_with_two_behaviours_is_refused() -> None:
    class Twice(MachineSpec):
        boot_disk: Annotated[str | None, Behaviour(Change.HOST), Behaviour(Change.IN_PLACE)] = None

    with pytest.raises(ValueError, match=r"Twice\.bootDisk has more than one behaviour"):
        declared.fields_of(Twice)


def test_a_wrong_mark_of_the_hash_is_refused() -> None:
    with pytest.raises(ValueError, match=r"only a field with Change\.HOST is part of the hash"):
        Behaviour(Change.IN_PLACE, hashed_as="config")
    with pytest.raises(ValueError, match="a timeout of the deletion flows in place"):
        Behaviour(Change.HOST, timeout=True)


def test_an_added_field_makes_a_revision_if_it_is_declared_so(extended: Fields) -> None:
    assert set(rollout_part({"spec": ADDED}, extended)) == {"imagePullPolicy", "bootDisk"}


def test_an_added_field_flows_in_place_if_it_is_declared_so(extended: Fields) -> None:
    assert given({"spec": ADDED}, extended) == {"fields": {"shutdownTimeout": "5m"}}
    assert "shutdownTimeout" in extended.timeouts


def test_an_added_field_makes_another_host_if_it_is_declared_so(extended: Fields) -> None:
    resolved = {"config": {}, "versions": []}
    without = extended.host_part({}, resolved)
    assert extended.host_part(ADDED, resolved) == {**without, "bootDisk": "b"}


@pytest.mark.parametrize("empty", [{}, {"bootDisk": None}, {"bootDisk": ""}])
def test_an_added_field_that_is_not_given_changes_no_hash(extended: Fields, empty: dict[str, Any]) -> None:
    """Otherwise every host would be changed or replaced when the controllers are updated."""
    resolved = {"config": {"size": "small"}, "versions": ["1.34.0", "", ""]}
    spec = {"failureDomain": "zone-1", **empty}
    assert extended.host_part(spec, resolved) == MACHINE_SPEC.host_part(spec, resolved)
    assert rollout_part({"spec": spec}, extended) == rollout_part({"spec": spec})


def test_an_added_field_belongs_to_one_machine_if_it_is_declared_so(extended: Fields) -> None:
    assert extended.own == ("providerID", "serialNumber")


def test_an_added_field_is_in_the_table_of_the_docs(extended: Fields) -> None:
    page = apidocs.with_behaviours(f"before\n{apidocs.END}\nafter\n", extended)
    for name in ADDED:
        assert f"| `{name}` | {extended.behaviours[name].change} |" in page
    assert page.endswith(f"{apidocs.END}\nafter\n")


CHANGED: dict[str, Any] = {
    "metadata": {"labels": {"a": "b"}},
    "taints": [{"key": "a", "effect": "NoSchedule"}],
    "providerConfig": {"value": {"apiVersion": "a/v1", "kind": "B", "size": "big"}},
    "providerSpec": {"value": {"apiVersion": "a/v1", "kind": "B", "size": "big"}},
    "versions": {"kubelet": "1.99.0"},
    "configSource": {"configMap": {"name": "a"}},
    "providerID": "x://another",
    "roles": ["Node"],
    "clusterName": "another",
    "failureDomain": "zone-2",
    "nodeDrainTimeout": "17m",
    "nodeDrainDeleteAfter": "17m",
    "nodeDrainForceAfter": "17m",
    "nodeVolumeDetachTimeout": "17m",
    "nodeDeletionTimeout": "17m",
    "readinessGates": [{"conditionType": "A"}],
    "minReadySeconds": 17,
    "bootstrap": {"endpoint": "https://10.0.0.9:6443"},
}
"""For each field a value that no builder gives."""


def edited(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A Machine before and after an edit of one field."""
    before = machine("m-1").build()
    after = {**before, "spec": {**before["spec"], name: CHANGED[name]}}
    if name == "providerSpec":
        after["spec"].pop("providerConfig", None)
    return before, after


def test_each_field_has_a_changed_value_here() -> None:
    assert set(CHANGED) == set(MACHINE_SPEC.behaviours)


@pytest.mark.parametrize("name", CHANGED)
def test_the_controllers_do_what_the_field_declares(name: str) -> None:
    change = MACHINE_SPEC.behaviours[name].change
    before, after = edited(name)
    rolled = template_hash({"spec": before["spec"]}) != template_hash({"spec": after["spec"]})
    assert rolled == (change in {Change.HOST, Change.REVISION})
    other_host = desired_host(before, FakeView()).spec_hash != desired_host(after, FakeView()).spec_hash
    assert other_host == (change is Change.HOST)
    flows = given({"spec": before["spec"]}) != given({"spec": after["spec"]})
    assert flows == (change in {Change.NODE, Change.IN_PLACE})


def test_hashes_of_hosts_that_exist_stay_what_they_were() -> None:
    """A host carries the hash that it was made for: another way to count it would change every host."""
    part = MACHINE_SPEC.host_part({"roles": ["Node"]}, {"config": {"a": 1}, "versions": ["1", "", ""]})
    assert part == {"config": {"a": 1}, "versions": ["1", "", ""], "configSource": None, "failureDomain": ""}
