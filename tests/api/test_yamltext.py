"""One loader for the text of others: bounded by events, free of aliases, JSON in the end; and nobody goes round it."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from api.yamltext import Bounds, TextError, check, compose, load

ROOT = Path(__file__).resolve().parents[2]
PRODUCTION = ("api", "controllers", "providers", "nodewright")
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "\n".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)
)

REFUSED: dict[str, tuple[str | bytes, str]] = {
    "a bomb of aliases": (BOMB, "line 1: anchors and aliases are not allowed"),
    "an alias to nothing": ("a: *b", "line 1: anchors and aliases are not allowed"),
    "a value that holds itself": ("&a [*a]", "anchors and aliases are not allowed"),
    "a merge key": ("a: 1\n<<: {b: 2}", "line 2: merge keys"),
    "a chain of merge keys": ("<<: [{a: 1}, {b: 2}]", "merge keys"),
    "deep flow": ("[" * 30_000, "nested more than 64 levels"),
    "deep flow that starts with a key": ("a: " + "[" * 30_000, "nested more than 64 levels"),
    "deep maps in flow": ("a: " + "{a: " * 30_000, "nested more than 64 levels"),
    "deep blocks": ("- " * 30_000, "nested more than 64 levels"),
    "deep question marks": ("? " * 30_000, "nested more than 64 levels"),
    "deep JSON": ('{"a":' * 500 + "1" + "}" * 500, "nested more than 64 levels"),
    "very deep JSON": ("[" * 200_000 + "]" * 200_000, "nested more than 64 levels"),
    "too many values": ("[" + "a," * 30_000 + "]", "more than 20000 values"),
    "too many values in JSON": ("[" + "1," * 30_000 + "1]", "more than 20000 values"),
    "too large": ("a: " + "x" * 2**20, "more than 1048576 bytes"),
    "too large in bytes": ("é" * 600_000, "more than 1048576 bytes"),
    "an integer of 65 bits": ("a: 18446744073709551616", "line 1: an integer of more than 64 bits"),
    "a negative integer of 65 bits": ("a: -9223372036854775809", "more than 64 bits"),
    "an integer of 65 bits in JSON": ('{"a": 18446744073709551616}', "more than 64 bits"),
    "a hexadecimal integer": ("a: 0xfffffffffffffffff", "more than 64 bits"),
    "an octal integer": ("a: 07777777777777777777777777", "more than 64 bits"),
    "a binary integer": ("a: 0b" + "1" * 60_000, "more than 64 digits"),
    "an integer of many digits": ("a: " + "9" * 60_000, "more than 64 digits"),
    "an integer of many digits in JSON": ('{"a": ' + "9" * 60_000 + "}", "more than 64 digits"),
    "base 60 without end": ("a: 1" + ":59" * 20_000, "more than 64 digits"),
    "base 60 beyond 64 bits": ("a: 1" + ":59" * 15, "more than 64 bits"),
    "an infinite number": ("a: .inf", "line 1: a number is not finite"),
    "no number": ("a: .NaN", "not finite"),
    "a large exponent": ("a: 1.0e+999", "not finite"),
    "NaN in JSON": ('{"a": NaN}', "not finite"),
    "a large exponent in JSON": ('{"a": 1e999}', "not finite"),
    "a doubled key": ("a: 1\nb: 2\na: 3", 'line 3: key "a" already set'),
    "a doubled key in JSON": ('{"a": 1, "a": 2}', 'key "a" already set'),
    "a doubled key in two ways of writing": ("1: a\n'1': b", 'key "1" already set'),
    "a key that is a list": ("? [1]\n: 2", "keys must be text"),
    "a key that is a map": ("{a: 1}: 2", "keys must be text"),
    "bytes": ("a: !!binary aGk=", "tag"),
    "a set": ("!!set {a, b}", "tag"),
    "a time by its tag": ("a: !!timestamp 2026-01-01", "tag"),
    "an object": ("a: !!python/object/apply:os.system [ls]", "tag"),
    "a tag of its own": ("a: !mine x", "tag"),
    "a tag of another shape": ("a: !!map [1]", "tag"),
    "a number that is none": ("a: !!int x", "not a number"),
    "an empty number": ("a: !!int ''", "not a number"),
    "a boolean that is none": ("a: !!bool maybe", "not a boolean"),
    "two documents": ("a: 1\n---\nb: 2", "single document"),
    "a broken list": ("a: [1", "line [12]"),
    "a NUL": ("a: \0", "."),
    "half a character": ("a: \ud800", "UTF-8"),
    "bytes that are no text": (b"a: \xff", "UTF-8"),
    "UTF-16": ("a: 1".encode("utf-16"), "UTF-8"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_hostile_text_is_refused_in_one_short_line(case: str) -> None:
    text, message = REFUSED[case]
    with pytest.raises(TextError, match=message) as refused:
        load(text)
    assert len(str(refused.value)) < 200
    assert "\n" not in str(refused.value)


def test_a_text_that_is_refused_is_not_read_to_its_end() -> None:
    """Whatever stands behind the fault, of whatever size, has no part in the answer."""
    tail = "\nb: [" + "x, " * 300_000
    with pytest.raises(TextError, match="line 1: anchors"):
        load("a: &a 1" + tail)


def test_no_message_quotes_a_value() -> None:
    for text in ("token: [sup3rsecret", "token: 'sup3rsecret", "a: !!int sup3rsecret", "- sup3rsecret\nb: 1", "%sup3r"):
        with pytest.raises(TextError) as refused:
            load(text)
        assert "sup3r" not in str(refused.value)


READ: dict[str, tuple[str | bytes, Any]] = {
    "nothing": ("# nothing", None),
    "a date": ("2026-01-01", "2026-01-01"),
    "base 60, as the safe loader": ("12:30", 750),
    "octal, as the safe loader": ("[010, 0o10, 1e3, 1_000]", [8, "0o10", "1e3", 1000]),
    "a number of JSON": ("1e-05", 1e-05),
    "what begins as a number": ("1_000: a\n-2: b", {"1_000": "a", "-2": "b"}),
    "flow that is no JSON": ("{a: 1, b: [x]}", {"a": 1, "b": ["x"]}),
    "JSON with tabs": ('{\t"a":\t1}', {"a": 1}),
    "JSON with a pair of surrogates": ('{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}),
    "keys that are numbers": ("1: a\nyes: b", {"1": "a", "yes": "b"}),
    "the largest integers": ("[18446744073709551615, -9223372036854775808]", [2**64 - 1, -(2**63)]),
    "a mark of the byte order": (b"\xef\xbb\xbf{}", {}),
    "tags of JSON's types": ("a: !!str 1\nb: !!int '2'", {"a": "1", "b": 2}),
    "words": ("[yes, Off, ~, null, '']", [True, False, None, None, ""]),
}


@pytest.mark.parametrize("case", READ)
def test_what_may_be_is_read(case: str) -> None:
    text, expected = READ[case]
    assert load(text) == expected


def test_without_numbers_all_scalars_are_text() -> None:
    assert load("1.50", Bounds(numbers="none")) == "1.50"
    assert load("a: 1\nb: [yes, 2026-01-01]", Bounds(numbers="none")) == {"a": "1", "b": ["yes", "2026-01-01"]}


def test_numbers_of_kubernetes_are_kubectls() -> None:
    node = compose("[12:30, 1e3, 0o10]", Bounds(numbers="kubernetes"))
    assert node is not None
    assert load("- 12:30\n- 1e3\n- 0o10", Bounds(numbers="kubernetes")) == ["12:30", 1000.0, 8]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",))),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(st.characters(exclude_categories=("Cs",))), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(JSON)
def test_json_is_read_as_it_was_written(value: Any) -> None:
    assert load(json.dumps(value)) == value
    assert check(value) == ""


@given(st.text(st.sampled_from("ab:-?[]{},&*!|>'\"%@`#<=~.\n\t 019xoeINF_+\\")) | st.binary(max_size=200))
def test_any_text_is_read_or_refused(text: str | bytes) -> None:
    try:
        found = load(text)
    except TextError:
        return
    assert check(found) == ""
    assert load(json.dumps(found)) == found


@given(st.text(st.sampled_from("ab:-[]{},'\"#~.\n 019xoe_+")))
def test_where_both_read_it_is_what_the_safe_loader_reads(text: str) -> None:
    try:
        ours = load(text)
        theirs = read_elsewhere(text)
    except (TextError, yaml.YAMLError, ValueError):
        return
    keys_as_text = json.loads(json.dumps(theirs, default=str))
    if _plain(theirs):
        assert ours == keys_as_text


def read_elsewhere(text: str) -> Any:
    """JSON as JSON: YAML 1.1 has its ``1e5`` as text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return yaml.safe_load(text)


def _plain(value: Any) -> bool:
    """Whether JSON can hold it, keys included."""
    if isinstance(value, dict):
        return all(isinstance(key, str) for key in value) and all(map(_plain, value.values()))
    if isinstance(value, list):
        return all(map(_plain, value))
    return value is None or isinstance(value, str | int | bool) or (isinstance(value, float) and math.isfinite(value))


def _calls(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Each use of a name that makes values or nodes of YAML, by whatever way it was imported."""
    making = {"load", "load_all", "safe_load", "safe_load_all", "full_load", "full_load_all", "unsafe_load",
              "unsafe_load_all", "compose", "compose_all", "parse", "scan"}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "yaml":
            if node.attr in making or node.attr.endswith("Loader"):
                yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("yaml", "ruamel"):
            yield node.lineno, "from yaml import"
        elif isinstance(node, ast.Import) and any(
            one.name.startswith(("yaml.", "ruamel")) or (one.name == "yaml" and one.asname) for one in node.names
        ):
            yield node.lineno, "import under another name"
        elif isinstance(node, ast.Constant) and node.value in ("CSafeLoader", "SafeLoader", "safe_load"):
            yield node.lineno, str(node.value)


def test_nobody_else_reads_yaml() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}: {what}"
        for folder in PRODUCTION
        for file in sorted((ROOT / folder).rglob("*.py"))
        if file != ROOT / "api" / "yamltext.py"
        for line, what in _calls(ast.parse(file.read_text()))
    ]
    assert found == [], "read the text of others by api.yamltext"
