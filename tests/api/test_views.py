"""The views that controllers read have the fields and defaults of the models, and reading them never raises."""

from __future__ import annotations

import dataclasses
import sys
from datetime import timedelta
from types import ModuleType
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from api import views
from api.durations import parse_duration
from api.machinehealthcheck import MachineHealthCheckSpec, RemediationStrategy
from api.machineset import InPlaceUpdate, MachineSetSpec
from api.model import Model
from api.reading import Reading
from hack.views import RAW, VIEWED, module

VIEWS: dict[str, type[Any]] = {
    model.__name__: getattr(views, f"{model.__name__}View") for model in (*VIEWED, InPlaceUpdate, RemediationStrategy)
}
MODELS: dict[str, type[Model]] = {model.__name__: model for model in (*VIEWED, InPlaceUpdate, RemediationStrategy)}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)


def read(name: str, spec: object) -> tuple[Any, Reading]:
    found = Reading(spec, "spec")
    return VIEWS[name].read(found), found


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_has_the_fields_of_its_model(name: str) -> None:
    assert [field.name for field in dataclasses.fields(VIEWS[name])] == list(MODELS[name].model_fields)


@pytest.mark.parametrize("name", VIEWS)
def test_what_is_not_given_or_null_is_the_default_of_the_model(name: str) -> None:
    nothing, empty = read(name, {})
    nulls, null = read(name, {str(field.alias): None for field in MODELS[name].model_fields.values()})
    assert nothing == nulls == VIEWS[name]()
    assert empty.faults == null.faults == []
    for python_name, field in MODELS[name].model_fields.items():
        value = getattr(nothing, python_name)
        if field.is_required() or dataclasses.is_dataclass(value):
            continue
        expected = parse_duration(field.default) if isinstance(value, timedelta) else field.default
        assert value == expected, python_name


@pytest.mark.parametrize("name", VIEWS)
@given(data=st.data())
def test_reading_is_total_and_junk_gives_a_value_of_the_right_type(name: str, data: st.DataObject) -> None:
    aliases = [str(field.alias) for field in MODELS[name].model_fields.values()]
    spec = data.draw(JSON | st.dictionaries(st.sampled_from(aliases), JSON))
    view, found = read(name, spec)
    assert isinstance(view, VIEWS[name])
    assert all(fault.path == "spec" or fault.path.startswith("spec.") for fault in found.faults)


@given(st.integers(-3, 2**33) | JSON)
def test_a_view_takes_a_number_if_the_model_does(value: object) -> None:
    """But for numbers in other types, which pydantic turns into integers and the API server refuses."""
    try:
        InPlaceUpdate.model_validate({"minAvailable": value})
        takes = True
    except ValidationError:
        takes = False
    view, found = read("InPlaceUpdate", {"minAvailable": value})
    if isinstance(value, int) and not isinstance(value, bool):
        assert (not found.faults) == takes
        assert view.min_available == (value if takes else 0)
    elif value is not None:
        assert found.problem.startswith("spec.minAvailable: ")


@pytest.mark.parametrize(
    ("name", "spec", "problem"),
    [
        ("MachineSetSpec", None, "spec: must be an object"),
        ("MachineSetSpec", {"replicas": True}, "spec.replicas: True is not a number from 0 to 100000"),
        (
            "MachineSetSpec",
            {"inPlaceUpdate": {"policy": "Maybe"}},
            "spec.inPlaceUpdate.policy: 'Maybe' is none of Prefer, Require",
        ),
        ("MachineSetSpec", {"inPlaceUpdate": []}, "spec.inPlaceUpdate: must be an object"),
        ("MachineSetSpec", {"failureDomains": ["a", "a"]}, "spec.failureDomains: names a failure domain twice"),
        (
            "MachineDeploymentSpec",
            {"strategy": {"rollingUpdate": {"onFailure": 3}}},
            "spec.strategy.rollingUpdate.onFailure: 3 is none of Continue, Pause, Rollback",
        ),
        (
            "MachineDeploymentSpec",
            {"rollout": {"after": "soon"}},
            "spec.rollout.after: 'soon' is not a time like 2026-01-31T20:00:00Z",
        ),
        (
            "MachineHealthCheckSpec",
            {"nodeStartupTimeout": 5},
            "spec.nodeStartupTimeout: 5 is not a duration like 90s, 10m or 1h30m",
        ),
    ],
)
def test_a_fault_names_the_field_and_what_it_should_be(name: str, spec: object, problem: str) -> None:
    assert read(name, spec)[1].problem == problem


class Extended(MachineSetSpec):
    """A copy of the model, to which somebody has added fields."""

    warm_up_seconds: Annotated[int, Field(ge=0, le=600)] = 30
    """A number."""
    grace: Annotated[MachineHealthCheckSpec, Field()] | None = None
    """An object."""


def test_a_field_that_is_added_to_a_model_is_in_its_view(monkeypatch: pytest.MonkeyPatch) -> None:
    generated = ModuleType("generated_views")
    monkeypatch.setitem(sys.modules, "generated_views", generated)
    exec(module((Extended,)), vars(generated))
    view = vars(generated)["ExtendedView"]
    assert (view().warm_up_seconds, view().grace) == (30, None)
    found = Reading({"warmUpSeconds": 601, "grace": {"maxUnhealthy": 2}}, "spec")
    extended = view.read(found)
    assert (extended.warm_up_seconds, extended.grace.max_unhealthy) == (30, 2)
    assert found.problem == "spec.warmUpSeconds: 601 is not a number from 0 to 600"


def test_what_is_left_raw_has_a_reader_of_its_own() -> None:
    assert sorted(model.__name__ for model in RAW) == ["LabelSelector", "MachineTemplateSpec", "RemediationTemplate"]
