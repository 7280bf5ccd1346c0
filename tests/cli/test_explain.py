"""``nodewright explain provider``: the fields that providers' own schemas describe."""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nodewright.cli import main
from nodewright.cli.commands.explain import lines
from nodewright.cli.exits import FAILED, OK, USAGE
from nodewright.cli.schema_fields import DEEPEST, MOST_FIELDS, Fields, path_of
from providers.base.registry import Registry

OURS = {one.name for one in entry_points(group="nodewright.providers") if one.dist and one.dist.name == "nodewright"}
SCHEMAS = {each.name: kind.schema for each in Registry.installed().registrations() for kind in each.config_kinds}


def said(capsys: pytest.CaptureFixture[str], *argv: str, code: int = OK) -> str:
    assert main.run(["explain", *argv]) == code
    told = capsys.readouterr()
    return told.out if code == OK else told.err


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_field_of_our_providers_has_a_type_and_a_description(name: str) -> None:
    fields = Fields(SCHEMAS[name]).all_below()
    assert {"apiVersion", "kind"} < {field.path for field in fields}
    assert [one.path for one in fields if not one.description or one.type == "anything"] == []


def test_the_providers_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "provider")
    assert "openstack  openstack.nodewright.dev/v1alpha1 OpenStackMachineConfig" in text
    listed = json.loads(said(capsys, "providers", "-o", "json"))["providers"]
    assert {each["name"] for each in listed} >= {"openstack", "simulated"}


def test_required_fields_stand_first_with_type_limits_and_default(capsys: pytest.CaptureFixture[str]) -> None:
    value = yaml.safe_load(said(capsys, "provider", "openstack", "-o", "yaml"))
    required = [each["path"] for each in value["fields"] if each["required"]]
    assert (
        [each["path"] for each in value["fields"]][: len(required)] == required == ["cloud", "flavor", "image", "ports"]
    )
    ports = next(each for each in value["fields"] if each["path"] == "ports")
    assert ports["type"] == "list of object"
    assert "items at most 16" in ports["limits"]


@pytest.mark.parametrize("words", ["openstack.ports", "openstack.ports[]", "openstack.ports[0]"])
def test_a_path_names_a_field_and_shows_what_is_below(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "provider", words)
    assert "FIELD     ports\nTYPE      list of object" in text
    assert "  ports.network  string or object, required" in text
    assert 'default: "normal"' in text


def test_all_levels_are_shown_in_short(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "provider", "openstack", "--recursive")
    assert "  ports.subports.network.filter.tags  list of string, required" in text


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        ("provider opnstack", FAILED, "Did you mean openstack?"),
        ("provider openstack.prots", FAILED, "Did you mean ports?"),
        ("provider openstack.ports.netwrk", FAILED, 'openstack.ports has no field "netwrk". Did you mean network?'),
        ("provider openstack.keyPair.x", FAILED, "It has no fields"),
        ("machine.spec", USAGE, "`kubectl explain machine.spec`"),
        ("provider/openstack simulated", USAGE, "nodewright explain provider"),
    ],
)
def test_what_there_is_not_is_told_with_what_is_near(
    words: str, code: int, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hint in said(capsys, *words.split(), code=code)


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("name", SCHEMAS)
def test_it_fits_the_terminal(name: str, width: int) -> None:
    fields = Fields(SCHEMAS[name])
    head = {"provider": name, "apiVersion": "a.example/v1", "kind": "Config", "description": fields.description}
    shown = lines(head, fields.below(), width)
    assert [line for line in shown if len(line) > width and " " in line.strip()] == []


def test_a_schema_that_names_itself_ends() -> None:
    own = {"properties": {"child": {"$ref": "#"}, "list": {"type": "array", "items": {"$ref": "#"}}}}
    fields = Fields({"type": "object", **own})
    assert len(fields.all_below()) <= MOST_FIELDS
    assert fields.at(path_of("child.child.list[3].child")) is not None
    assert Fields({"$ref": "#"}).below() == []
    assert Fields({"properties": {"a": {"anyOf": [{"$ref": "#/properties/a"}] * 8}}}).below()[0].type == "anything"


def test_maps_and_alternatives_are_named_by_what_they_hold() -> None:
    schema = {
        "properties": {
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "named": {"type": "object", "patternProperties": {"^a": {"type": "string"}}},
            "either": {"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "array", "items": {"type": "number"}}]},
            "types": {"type": ["string", "null", "integer"]},
            "any": True,
        }
    }
    assert {one.path: one.type for one in Fields(schema).below()} == {
        "map": "map of integer",
        "named": "map of string",
        "either": "string or list of number",
        "types": "string or integer",
        "any": "anything",
    }


WORDS = st.sampled_from(
    [
        "properties",
        "items",
        "type",
        "anyOf",
        "$ref",
        "required",
        "enum",
        "additionalProperties",
        "object",
        "#/items",
        "a",
    ]
)
SCHEMA = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(schema=SCHEMA)
def test_any_json_can_be_explained(schema: Any) -> None:
    fields = Fields(schema)
    assert fields.at(("a",) * (DEEPEST + 1)) is None or fields.below()
    head = {"provider": "a", "apiVersion": "a/v1", "kind": "A", "description": fields.description}
    assert lines(head, fields.all_below(), 80)
