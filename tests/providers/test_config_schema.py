"""What is wrong with a config, with the field named."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from providers.base.config_schema import MOST_PROBLEMS, problems_of
from providers.simulated.config import SimulatedMachineConfig, json_schema, parse

DISKS: dict[str, Any] = {
    "type": "object",
    "required": ["flavor"],
    "additionalProperties": False,
    "properties": {
        "flavor": {"type": "string", "minLength": 1},
        "password": {"type": "string", "minLength": 8, "writeOnly": True},
        "disks": {
            "type": "array",
            "maxItems": 2,
            "items": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}},
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "network": {"oneOf": [{"type": "string"}, {"type": "object", "required": ["id"]}]},
        "size": {"enum": ["small", "large"]},
    },
}

WRONG: dict[str, tuple[Any, list[tuple[str, str]]]] = {
    "not an object": ([], [("", "must be an object, is a list of 0")]),
    "a required field is missing": ({}, [("flavor", "is required")]),
    "a wrong type": ({"flavor": 3}, [("flavor", "must be a string, is 3")]),
    "null": ({"flavor": None}, [("flavor", "must be a string, is null")]),
    "inside a list": (
        {"flavor": "a", "disks": [{"size": 1}, {"size": 0}]},
        [("disks[1].size", "must be at least 1, is 0")],
    ),
    "a misspelt field": ({"flavor": "a", "diks": []}, [("diks", "is not a known field; did you mean 'disks'?")]),
    "a strange key": ({"flavor": "a", "x y": 1}, [("['x y']", "is not a known field")]),
    "a map's value": ({"flavor": "a", "labels": {"a/b": 1}}, [("labels['a/b']", "must be a string, is 1")]),
    "neither alternative": ({"flavor": "a", "network": 7}, [("network", "must be a string or an object, is 7")]),
    "the nearer alternative": ({"flavor": "a", "network": {}}, [("network.id", "is required")]),
    "not in the list": ({"flavor": "a", "size": "huge"}, [("size", "must be one of small, large, is 'huge'")]),
    "too many": ({"flavor": "a", "disks": [{}, {}, {}]}, [("disks", "must hold at most 2")]),
    "a secret is not repeated": (
        {"flavor": "a", "password": "hunter2"},
        [("password", "must hold at least 8, is hidden")],
    ),
    "two at once, sorted": ({"disks": 1}, [("disks", "must be a list, is 1"), ("flavor", "is required")]),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_problem_names_its_field(case: str) -> None:
    config, want = WRONG[case]
    assert [(problem.path, problem.message) for problem in problems_of(config, DISKS)] == want


def test_a_good_config_has_no_problems() -> None:
    good = {"flavor": "a", "disks": [{"size": 1}], "network": "n", "size": "small", "password": "long enough"}
    assert problems_of(good, DISKS) == ()


def test_long_values_are_cut_and_many_problems_too() -> None:
    (problem,) = problems_of({"flavor": "a", "size": "x" * 500}, DISKS)
    assert len(problem.message) < 150
    many = {"flavor": "a", **{f"field{n}": 1 for n in range(100)}}
    assert len(problems_of(many, DISKS)) == MOST_PROBLEMS


def test_the_schema_of_the_simulated_config_is_valid_and_asks_for_nothing() -> None:
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    assert "required" not in schema
    assert problems_of({}, schema) == ()


@pytest.mark.parametrize(
    "config",
    [
        {"cpus": 0},
        {"memory": "4X"},
        {"updates": "Sometimes"},
        {"bootSeconds": -1},
        {"bootSeconds": {"median": 1}},
        {"zombieRate": 2},
        {"cloud": {"name": "Not A Name"}},
        {"cloud": {"quota": {"hosts": -1}}},
        {"cloud": {"zones": {"a": -1}}},
        {"unknown": 1},
    ],
)
def test_the_schema_refuses_what_the_model_refuses(config: dict[str, Any]) -> None:
    assert problems_of(config, json_schema())
    with pytest.raises(ValueError):
        parse(config)


def test_every_default_of_the_model_passes_its_own_schema() -> None:
    whole = SimulatedMachineConfig().model_dump(by_alias=True, mode="json", exclude_none=True)
    assert problems_of(whole, json_schema()) == ()
