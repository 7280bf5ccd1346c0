"""Bad objects are refused with the field named, by the offline check and by the CRDs; good ones by neither."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from api.validate import validate
from tests.api.crd_judge import judge
from tests.api.samples import BAD, GOOD, Bad, changed, examples

ACCEPTED = {**GOOD, **examples()}


@pytest.mark.parametrize("sample", [s for s in BAD.values() if s.offline], ids=[n for n, s in BAD.items() if s.offline])
def test_the_offline_check_names_the_bad_field(sample: Bad) -> None:
    assert sample.offline in [error.path for error in validate(sample.obj)]


@pytest.mark.parametrize("sample", [s for s in BAD.values() if s.server], ids=[n for n, s in BAD.items() if s.server])
def test_the_crd_refuses_the_bad_field(sample: Bad) -> None:
    assert sample.server in judge(sample.obj)


@pytest.mark.parametrize(
    "sample", [s for s in BAD.values() if not s.server], ids=[n for n, s in BAD.items() if not s.server]
)
def test_what_is_said_to_escape_the_crd_does_escape_it(sample: Bad) -> None:
    """So that the table stays honest about what only the controllers can refuse."""
    assert judge(sample.obj) == []


def test_every_fault_is_seen_by_someone() -> None:
    assert [name for name, sample in BAD.items() if not sample.offline and not sample.server] == []


@pytest.mark.parametrize("obj", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_good_objects_pass_the_offline_check(obj: dict[str, Any]) -> None:
    assert validate(obj) == []


@pytest.mark.parametrize("obj", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_good_objects_pass_the_crd(obj: dict[str, Any]) -> None:
    assert judge(obj) == []


def _machine(**spec: Any) -> dict[str, Any]:
    return changed("machine", {f"spec.{name}": value for name, value in spec.items()})


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [
        ({}, {"providerID": "sim://1"}, []),
        ({"providerID": "sim://1"}, {"providerID": "sim://2"}, ["spec.providerID"]),
        ({"providerID": "sim://1"}, {"providerID": ""}, []),
        ({"providerID": ""}, {"providerID": "sim://2"}, []),
        ({"providerID": "sim://1"}, {}, []),
        ({}, {"clusterName": "a"}, []),
        ({"clusterName": "a"}, {"clusterName": "b"}, ["spec.clusterName"]),
        ({"clusterName": "a"}, {}, ["spec.clusterName"]),
    ],
)
def test_identity_of_a_machine_is_fixed_but_its_host_may_be_let_go(
    before: dict[str, str], after: dict[str, str], refused: list[str]
) -> None:
    assert judge(_machine(**after), _machine(**before)) == refused


@pytest.mark.parametrize(("base", "refused"), [("deployment", ["spec.selector"]), ("set", [])])
def test_only_a_deployments_selector_is_immutable(base: str, refused: list[str]) -> None:
    other = {"spec.selector": {"matchLabels": {"pool": "b"}}, "spec.template.metadata.labels": {"pool": "b"}}
    assert judge(changed(base, other), changed(base, {})) == refused


@pytest.mark.parametrize("name", ["MachineDeployment name too long", "MachineSet name too long"])
def test_objects_taken_over_with_long_names_can_still_be_changed_and_deleted(name: str) -> None:
    long = BAD[name].obj
    released = copy.deepcopy(long)
    released["metadata"]["finalizers"] = []
    assert judge(released, old=long) == []
    assert validate(released, creating=False) == []
