"""The pydantic types: wire names, round trips, times, and agreement with the CRDs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from api.kinds import KINDS, OTHERS
from api.machine import Machine, MachineStatus
from api.machineset import MachineSet
from api.meta import Condition
from api.model import Model, wire_name
from tests.api.crd_judge import schema_of
from tests.api.samples import GOOD, changed, examples


@pytest.mark.parametrize(
    ("python", "wire"),
    [
        ("provider_id", "providerID"),
        ("cidr_blocks", "cidrBlocks"),
        ("pod_cidr", "podCIDR"),
        ("pod_cidrs", "podCIDRs"),
        ("cluster_ip", "clusterIP"),
        ("api_version", "apiVersion"),
        ("api_endpoints", "apiEndpoints"),
        ("dns_domain", "dnsDomain"),
        ("node_volume_detach_timeout", "nodeVolumeDetachTimeout"),
        ("uid", "uid"),
        ("min_ready_seconds", "minReadySeconds"),
    ],
)
def test_wire_names_are_spelt_as_kubernetes_spells_them(python: str, wire: str) -> None:
    assert wire_name(python) == wire


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _disagreements(model: type[BaseModel], schema: dict[str, Any], path: str) -> Iterator[str]:
    aliases = {field.alias for field in model.model_fields.values()}
    if aliases != set(schema.get("properties", {})):
        yield f"{path}: {sorted(map(str, aliases ^ set(schema.get('properties', {}))))}"
        return
    for field in model.model_fields.values():
        child = schema["properties"][field.alias]
        child = child.get("items", child.get("additionalProperties", child))
        for inner in _models(field.annotation):
            yield from _disagreements(inner, child, f"{path}.{field.alias}")


@pytest.mark.parametrize("kind", KINDS)
def test_every_alias_equals_the_committed_crd(kind: str) -> None:
    schema = schema_of(kind)
    found: list[str] = []
    for name, field in KINDS[kind].model_fields.items():
        assert field.alias in schema["properties"], name
        for inner in _models(field.annotation):
            if name != "metadata":
                found += _disagreements(inner, schema["properties"][str(field.alias)], str(field.alias))
    assert found == []


@pytest.mark.parametrize("obj", [*GOOD.values(), *examples().values()], ids=[*GOOD, *examples()])
def test_every_good_object_is_read_and_written_back_as_it_was(obj: dict[str, Any]) -> None:
    assert {**KINDS, **OTHERS}[obj["kind"]].model_validate(obj).wire() == obj


_JSON = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=3),
    max_leaves=6,
)
_UNKNOWN = st.dictionaries(st.from_regex(r"x[A-Z][a-z]{1,6}", fullmatch=True), _JSON, max_size=3)


@given(_UNKNOWN, _UNKNOWN, _UNKNOWN)
def test_unknown_fields_survive_at_every_level(
    top: dict[str, Any], spec: dict[str, Any], status: dict[str, Any]
) -> None:
    obj = changed("machine", {"status": {"phase": "Running", **status}})
    obj |= top
    obj["spec"] |= spec
    assert Machine.model_validate(obj).wire() == obj


def test_fields_are_taken_by_either_name() -> None:
    assert MachineStatus.model_validate({"node_ref": {"name": "n"}}) == MachineStatus.model_validate(
        {"nodeRef": {"name": "n"}}
    )


def test_times_are_written_without_microseconds() -> None:
    moment = datetime(2026, 11, 20, 8, 30, 15, 123456, tzinfo=UTC)
    condition = Condition(type="Ready", status="True", reason="Ready", message="", last_transition_time=moment)
    assert condition.wire()["lastTransitionTime"] == "2026-11-20T08:30:15Z"


def test_objects_are_frozen() -> None:
    machine = Machine.model_validate(changed("machine", {}))
    with pytest.raises(ValidationError, match="frozen"):
        machine.spec = machine.spec  # type: ignore[misc]


def test_defaults_are_those_of_the_crd() -> None:
    spec = MachineSet.model_validate(changed("set", {})).spec
    assert (spec.replicas, spec.min_ready_seconds, spec.delete_policy) == (1, 0, "Random")


def _all_models() -> list[type[Model]]:
    found: list[type[Model]] = []
    waiting: list[type[Model]] = [Model]
    while waiting:
        children = waiting.pop().__subclasses__()
        found += children
        waiting += children
    return [model for model in found if model.__module__.startswith("api.")]


def test_every_type_and_field_is_described() -> None:
    missing = [
        f"{model.__name__}.{name}"
        for model in _all_models()
        for name, field in model.model_fields.items()
        if not field.description
    ]
    assert missing == []
    assert [model.__name__ for model in _all_models() if not model.__doc__] == []


@pytest.mark.parametrize(
    "module", ["names", "conditions", "selectors", "intorstring", "providerconfig", "validate", "quantity"]
)
def test_rules_on_plain_data_do_not_load_pydantic(module: str) -> None:
    """The command line starts in a fraction of a second because of it."""
    code = f"import sys, api.{module}; print(sorted({{'pydantic', 'yaml', 'ipaddress'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == "[]"
