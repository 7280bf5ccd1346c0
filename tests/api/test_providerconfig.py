"""All three generations of providerConfig are read, and what can't be read names its field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.providerconfig import MachineClassRef, ProviderConfig, ProviderConfigError, read, read_class

CONFIG = {"apiVersion": "simulated.nodewright.dev/v1alpha1", "kind": "SimulatedMachineConfig", "cpus": 2}
FLOW = "{apiVersion: simulated.nodewright.dev/v1alpha1, kind: SimulatedMachineConfig, cpus: 2}"
_CLASS = "providerSpec.valueFrom.machineClass"
YAML = "apiVersion: simulated.nodewright.dev/v1alpha1\nkind: SimulatedMachineConfig\ncpus: 2\n"


@pytest.mark.parametrize(
    ("spec", "source"),
    [
        ({"providerConfig": YAML}, "providerConfig"),
        ({"providerConfig": json.dumps(CONFIG)}, "providerConfig"),
        ({"providerConfig": FLOW}, "providerConfig"),
        ({"providerConfig": {"value": CONFIG}}, "providerConfig.value"),
        ({"providerConfig": {"value": YAML}}, "providerConfig.value"),
        ({"providerSpec": {"value": CONFIG}}, "providerSpec.value"),
        ({"providerSpec": {"value": CONFIG, "valueFrom": {}}}, "providerSpec.value"),
        ({"providerConfig": {}, "providerSpec": {"value": CONFIG}}, "providerSpec.value"),
        ({"providerConfig": "", "providerSpec": {"value": CONFIG}}, "providerSpec.value"),
    ],
)
def test_every_generation_gives_the_same_configuration(spec: dict[str, Any], source: str) -> None:
    found = read(spec)
    assert found == ProviderConfig(CONFIG, None, source)
    assert found is not None
    assert (found.api_version, found.kind) == ("simulated.nodewright.dev/v1alpha1", "SimulatedMachineConfig")


@pytest.mark.parametrize("field", ["providerConfig", "providerSpec"])
def test_a_reference_to_a_class_is_read(field: str) -> None:
    found = read({field: {"valueFrom": {"machineClass": {"name": "small", "provider": "sim", "namespace": "n"}}}})
    assert found == ProviderConfig(None, MachineClassRef("small", "n", "sim"), f"{field}.valueFrom")
    assert (found.api_version, found.kind) == ("", "") if found else False


@pytest.mark.parametrize(
    "spec", [{}, {"providerConfig": None}, {"providerSpec": {}}, {"providerConfig": {"value": None}}]
)
def test_nothing_given_is_nothing_read(spec: dict[str, Any]) -> None:
    assert read(spec) is None


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"providerConfig": YAML, "providerSpec": {"value": CONFIG}}, "providerSpec", "at most one"),
        ({"providerSpec": YAML}, "providerSpec", "must be an object"),
        ({"providerConfig": 5}, "providerConfig", "a string or an object"),
        ({"providerConfig": [CONFIG]}, "providerConfig", "a string or an object"),
        ({"providerConfig": "just words"}, "providerConfig", "must hold an object"),
        ({"providerConfig": "a: [1"}, "providerConfig", "line [12]: while parsing"),
        ({"providerConfig": "a: 1\n  b: 2"}, "providerConfig", "line 2"),
        ({"providerConfig": '{"a": NaN}'}, "providerConfig", "a number is not finite"),
        ({"providerConfig": "a: .inf"}, "providerConfig", "a number is not finite"),
        ({"providerConfig": "a: 18446744073709551616"}, "providerConfig", "more than 64 bits"),
        ({"providerConfig": "a: !!binary aGk="}, "providerConfig", "tag !!binary has no meaning"),
        ({"providerConfig": "a: !!python/object:os.system x"}, "providerConfig", "tag !!python/object:os.system has"),
        ({"providerConfig": "a: 1\n---\nb: 2"}, "providerConfig", "expected a single document"),
        ({"providerConfig": "x" * 32769}, "providerConfig", "more than 32768"),
        ({"providerConfig": {"value": "just words"}}, "providerConfig.value", "must hold an object"),
        ({"providerConfig": {"value": 5}}, "providerConfig.value", "must be an object"),
        ({"providerConfig": CONFIG}, "providerConfig.value", "belongs under value"),
        ({"providerSpec": {"value": CONFIG, "valueFrom": {"x": 1}}}, "providerSpec.valueFrom", "together with value"),
        ({"providerSpec": {"valueFrom": {"secret": "x"}}}, _CLASS, "name a"),
        ({"providerSpec": {"valueFrom": "small"}}, _CLASS, "name a"),
        ({"providerSpec": {"valueFrom": {"machineClass": {"name": ""}}}}, f"{_CLASS}.name", "name"),
        ({"providerSpec": {"valueFrom": {"machineClass": {"name": 3}}}}, f"{_CLASS}.name", "string"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_names_its_field(spec: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(ProviderConfigError, match=message) as caught:
        read(spec)
    assert caught.value.field == field


def test_few_lines_of_aliases_cannot_stand_for_gigabytes() -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "\n".join(
        f"{letter}: &{letter} [{','.join(['*' + before] * 9)}]"
        for before, letter in zip("abcdefgh", "bcdefghi", strict=True)
    )
    with pytest.raises(ProviderConfigError, match="line 1: anchors and aliases are not allowed"):
        read({"providerConfig": bomb})


@pytest.mark.parametrize("text", ["a: " + "[" * 100 + "]" * 100, '{"a": ' + "[" * 5000 + "]" * 5000 + "}", "[" * 30000])
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(ProviderConfigError, match="nest"):
        read({"providerConfig": text})


def test_a_date_stays_text_as_kubernetes_reads_it() -> None:
    found = read({"providerConfig": "created: 2026-01-01"})
    assert found is not None
    assert found.value == {"created": "2026-01-01"}


def test_text_in_kubermatic_style_is_read() -> None:
    found = read({"providerSpec": {"value": {"cloudProvider": "openstack", "cloudProviderSpec": {}}}})
    assert found is not None
    assert found.kind == ""


@pytest.mark.parametrize(
    ("machine_class", "source"),
    [
        ({"providerSpec": CONFIG}, "providerSpec"),
        ({"providerConfig": CONFIG}, "providerConfig"),
        ({"providerSpec": {"value": CONFIG}}, "providerSpec.value"),
    ],
)
def test_a_class_holds_its_configuration_directly(machine_class: dict[str, Any], source: str) -> None:
    assert read_class(machine_class) == ProviderConfig(CONFIG, None, source)


@pytest.mark.parametrize(
    "machine_class", [{}, {"providerSpec": {}}, {"providerSpec": CONFIG, "providerConfig": CONFIG}]
)
def test_a_class_without_exactly_one_configuration_is_refused(machine_class: dict[str, Any]) -> None:
    with pytest.raises(ProviderConfigError, match="exactly one"):
        read_class(machine_class)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1, max_size=8), _JSON, min_size=1, max_size=4))
def test_any_object_is_the_same_as_text_and_as_object(value: dict[str, Any]) -> None:
    as_text = read({"providerConfig": json.dumps(value)})
    as_object = read({"providerSpec": {"value": value}})
    assert as_text is not None
    assert as_object is not None
    assert as_text.value == as_object.value == value


_FIELD = _JSON | st.fixed_dictionaries({}, optional={"value": _JSON, "valueFrom": _JSON})


def _fault(spec: dict[str, Any]) -> str:
    try:
        read(spec)
    except ProviderConfigError as error:
        return error.field
    return ""


@given(st.dictionaries(st.sampled_from(["providerConfig", "providerSpec"]), _FIELD))
def test_junk_is_refused_with_a_field_and_never_breaks_the_reader(spec: dict[str, Any]) -> None:
    fault = _fault(spec)
    assert not fault or fault.startswith(("providerConfig", "providerSpec"))
