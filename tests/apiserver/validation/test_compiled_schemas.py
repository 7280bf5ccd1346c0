"""What holds of every schema and object: the fast verdict agrees with the slow walks, and inputs stay as they are."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewright.apiserver.openapi import builtins
from nodewright.apiserver.validation import compile_schema, faults, formats, gotext, nodes, pruning, verdict
from nodewright.apiserver.validation.patterns import compile_pattern
from tests.examples import usually

CRD = json.loads((Path(__file__).parent / "golden/widgets.crd.json").read_text())
SCHEMA = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
WIDGETS = compile_schema(SCHEMA)
ROOT = nodes.read(SCHEMA)
IS_FINE = verdict.compile_verdict(ROOT)
FEW = usually(40)

scalars = (
    st.none() | st.booleans() | st.integers(-3, 12) | st.floats(-3, 3) | st.sampled_from(["a", "ab", "Fast", "50%"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "port", "name", "deep", "x", "kind"]), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = sorted(SCHEMA["properties"]["spec"]["properties"])
specs = st.dictionaries(st.sampled_from([*FIELDS, "unknown"]), values, max_size=4)
sized = st.builds(lambda spec, size: {**spec, "size": size}, specs, st.integers(0, 5))


def widget(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}


@FEW
@given(specs | sized)
def test_what_the_fast_verdict_accepts_has_no_faults_and_nothing_to_prune(spec: Any) -> None:
    obj = widget(spec)
    if IS_FINE(obj):
        assert faults.find_faults(ROOT, obj, None) == []
        assert pruning.prune(ROOT, obj) == (obj, [])
        assert nodes.without_nulls(ROOT, obj) is obj


@FEW
@given(specs | sized)
def test_pruning_and_defaulting_twice_is_as_once_and_leaves_the_input_alone(spec: Any) -> None:
    obj = widget(spec)
    before = copy.deepcopy(obj)
    pruned, _ = WIDGETS.prune(obj)
    assert WIDGETS.prune(pruned) == (pruned, [])
    filled = WIDGETS.default(pruned)
    assert WIDGETS.default(filled) == filled
    WIDGETS.validate(filled, obj)
    assert json.dumps(obj) == json.dumps(before)


@FEW
@given(specs | sized)
def test_every_cause_names_a_field_and_an_unchanged_object_is_let_pass(spec: Any) -> None:
    obj = widget(spec)
    causes = WIDGETS.validate(obj)
    assert all(cause.field and cause.message and cause.reason.startswith("FieldValue") for cause in causes)
    assert faults.find_faults(ROOT, obj, copy.deepcopy(obj)) == []


@pytest.mark.parametrize(
    ("kind", "name"), [("Node", "nodes"), ("Pod", "pods"), ("Secret", "secrets"), ("Event", "events")]
)
def test_a_built_in_kind_compiles_and_takes_nulls_for_nothing(kind: str, name: str) -> None:
    schema = builtins.schema("", "v1", kind)
    assert schema is not None
    compiled = compile_schema(schema)
    obj = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "creationTimestamp": None, "labels": None}}
    assert compiled.validate(obj) == []
    assert compiled.default(obj)["metadata"] == {"name": name}
    pruned, unknown = compiled.prune({**obj, "nope": 1, "metadata": {"name": name, "nope": 2}})
    assert unknown == ["metadata.nope", "nope"]
    assert "nope" not in pruned


def test_a_wrong_type_in_metadata_is_named() -> None:
    causes = WIDGETS.validate({**widget({"size": 1}), "metadata": {"name": "w", "labels": {"a": 1}}})
    assert (causes[0].field, causes[0].reason) == ("metadata.labels.a", "FieldValueTypeInvalid")


BROKEN = {
    "no object": ([], "must be an object"),
    "a property that is no schema": ({"properties": {"spec": 3}}, ".spec: must be an object"),
    "a pattern that does not compile": ({"properties": {"a": {"type": "string", "pattern": "("}}}, "pattern '('"),
    "a rule that does not parse": (
        {"properties": {"spec": {"type": "object", "x-kubernetes-validations": [{"rule": "self. =="}]}}},
        ".spec: x-kubernetes-validations: rule 'self. ==': ",
    ),
    "a rule with an unknown function": (
        {"type": "object", "x-kubernetes-validations": [{"rule": "quantity(self.a).isGreaterThan(quantity('1'))"}]},
        "unknown function 'isGreaterThan'",
    ),
    "an empty rule": ({"type": "object", "x-kubernetes-validations": [{"message": "m"}]}, "rule is required"),
}


@pytest.mark.parametrize(("schema", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_schema_is_refused_with_its_place(schema: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        compile_schema(schema)
    assert message in str(caught.value)


def test_a_schema_has_a_bounded_depth() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(150):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(ValueError, match="nested deeper than 100 levels"):
        compile_schema(schema)


GOOD_AND_BAD = {
    "datetime": (["2026-11-20T19:46:18Z", "2026-11-20T19:46:18.5+01:00"], ["2026-02-30T00:00:00Z", "2026-11-20"]),
    "date": (["2024-02-29"], ["2023-02-29", "20240229"]),
    "duration": (["1h30m", "-1.5s", "0", "3 days"], ["1x", "h", ""]),
    "ipv4": (["10.0.0.1"], ["10.0.0", "::1"]),
    "ipv6": (["::1", "fe80::1"], ["10.0.0.1", ":::"]),
    "cidr": (["10.0.0.0/8", "fe80::/64"], ["10.0.0.0", "10.0.0.0/33"]),
    "mac": (["00:11:22:aa:BB:cc"], ["00:11:22"]),
    "uuid": (["5b7d3009-9772-4150-b5c2-b32dc9cf45f5"], ["5b7d3009"]),
    "uuid4": (["5b7d3009-9772-4150-b5c2-b32dc9cf45f5"], ["5b7d3009-9772-3150-b5c2-b32dc9cf45f5"]),
    "byte": (["aGk=", ""], ["a", "!!!!"]),
    "hostname": (["a.example.com"], ["-a", "a..b"]),
    "uri": (["https://a/b", "/path"], ["a b", "x"]),
    "email": (["a@b"], ["ab"]),
    "k8sshortname": (["a-1"], ["A", "-a", "a" * 64]),
    "k8slongname": (["a.b-c"], ["a..b", "a" * 254]),
    "hexcolor": (["#fff", "a1b2c3"], ["#ffff"]),
}


@pytest.mark.parametrize("name", GOOD_AND_BAD)
def test_a_format_tells_good_from_bad(name: str) -> None:
    good, bad = GOOD_AND_BAD[name]
    check = formats.CHECKS[name]
    assert [text for text in good if not check(text)] == []
    assert [text for text in bad if check(text)] == []


MATCHES = [("^a$", "a"), (r"^\$$", "$"), ("[$]", "$"), ("b", "abc"), (r"a\z", "a"), ("^(?i)a$", "A")]
MATCHES += [
    (r"^\pL$", "é"),
    ("^.$", "😀"),
    ("(?s)^.$", "\n"),
    (r"^[\w-]+$", "a-b"),
    (r"^[^\d\s]$", "x"),
    (r"\bfoo\b", "a foo"),
]
MISSES = [("^a$", "a\n"), (r"^\d$", "٣"), (r"^\w$", "é"), (r"^\s$", "\u00a0"), ("^[[:alpha:]]$", "é"), ("^.$", "\n")]
MISSES += [(r"^[\d]$", "٣"), (r"^\S$", " "), (r"^[^\D]$", "x")]


@pytest.mark.parametrize(("pattern", "text"), MATCHES)
def test_a_pattern_matches_what_it_matches_in_re2(pattern: str, text: str) -> None:
    assert compile_pattern(pattern).found_in(text)
    compiled = compile_schema({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}})
    assert compiled.validate({"a": text}) == []


@pytest.mark.parametrize(("pattern", "text"), MISSES)
def test_a_pattern_misses_what_it_misses_in_re2(pattern: str, text: str) -> None:
    assert not compile_pattern(pattern).found_in(text)
    compiled = compile_schema({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}})
    assert [c.reason for c in compiled.validate({"a": text})] == ["FieldValueInvalid"]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a", '"a"'),
        ('a"b\\', '"a\\"b\\\\"'),
        ("a\n\x01", '"a\\n\\x01"'),
        ("\u00a0é", '"\\u00a0é"'),
        ("\U000e0001", '"\\U000e0001"'),
    ],
)
def test_values_are_quoted_as_go_quotes_them(text: str, quoted: str) -> None:
    assert gotext.quote(text) == quoted


def test_what_nothing_may_match_is_refused_by_name() -> None:
    either = [{"properties": {"b": {"not": {}}}}, {"not": {"required": ["a"]}}]
    fields = {"a": {"type": "string"}, "b": {"type": "string"}}
    compiled = compile_schema({"type": "object", "properties": fields, "anyOf": either})
    assert [cause.message for cause in compiled.validate({"a": "x", "b": "y"})] == [
        'Invalid value: "": "" must validate at least one schema (anyOf)',
        'Invalid value: "": "b" must not validate the schema (not)',
    ]
    assert compiled.validate({"a": "x"}) == compiled.validate({"b": "y"}) == []


def test_a_fast_verdict_is_never_given_for_negations_that_cannot_be_translated() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "not": {"pattern": "^x"}}}}
    compiled = compile_schema(schema)
    assert verdict.compile_verdict(nodes.read(schema))({"a": "y"}) is False
    assert compiled.validate({"a": "y"}) == []
    assert compiled.validate({"a": "x"}) != []
