"""JSONPath: where a path leads, and which texts are none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewright.apiserver import jsonpath
from nodewright.apiserver.jsonpath import JSONPathError

MACHINE: Any = {
    "metadata": {"labels": {"a.b/c": "dotted", "plain": "p"}, "annotations": None},
    "spec": {"replicas": 0, "taints": [{"key": "x"}, {"key": "y", "value": ""}]},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "age": 3},
            {"type": "Drained", "status": "False", "age": 5},
            {"type": "Odd", "age": "old"},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.replicas", [0]),
        ("spec.replicas", [0]),
        ("$.spec.replicas", [0]),
        (".metadata.annotations", [None]),
        (".metadata.annotations.x", []),
        (".metadata.labels['a\\.b\\/c']", ["dotted"]),
        (".metadata.labels.a\\.b/c", ["dotted"]),
        (".metadata.labels['plain']", ["p"]),
        (".metadata['labels']['plain','a\\.b/c']", ["p", "dotted"]),
        (".spec.taints[*].key", ["x", "y"]),
        (".spec.taints[*].value", [""]),
        (".spec.taints[-1].key", ["y"]),
        (".spec.taints[0:1].key", ["x"]),
        (".spec.taints[::2].key", ["x"]),
        (".spec.taints[2]", []),
        (".spec.replicas[0]", []),
        ("..key", ["x", "y"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type != 'Ready')].type", ["Drained", "Odd"]),
        (".status.conditions[?(@.status)].type", ["Ready", "Drained"]),
        (".status.conditions[?(@.age > 3)].type", []),
        (".status.conditions[0:2][?(@.age > 3)].type", []),
        (".spec.taints[?(@.key == @.key)].key", ["x", "y"]),
        ('.status.conditions[?(@.type=="a)]b")].status', []),
        ("", [MACHINE]),
    ],
)
def test_a_path_leads_to(path: str, found: list[Any]) -> None:
    if path:
        assert jsonpath.find(path, MACHINE) == found
    else:
        assert jsonpath.find("$", MACHINE) == found


@pytest.mark.parametrize(
    "path",
    [
        ".a[",
        ".a[x]",
        '.a["b"]',
        ".a[?(@.b]",
        ".a[?(@.b)",
        '.a[?(@.b=="c)]',
        ".a,b",
        ".a{b}",
        ".a....b",
        ".a[?()]",
        ".a[--1]",
        "." + "a" * 5000,
        ".a" + "[?(@.a" * 40 + ")]" * 40,
    ],
)
def test_what_is_no_path_is_refused_by_name(path: str) -> None:
    with pytest.raises(JSONPathError, match="JSONPath"):
        jsonpath.compile_path(path)


def test_a_path_is_compiled_once() -> None:
    assert jsonpath.compile_path(".spec.once") is jsonpath.compile_path(".spec.once")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.sampled_from(["a", "b", "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=12,
)
PIECES = st.sampled_from(
    [".a", ".b", ".*", "..a", "[0]", "[-1]", "[*]", "[1:]", "[0,1]", "['a']", "['a','b']", "[?(@.a==1)]", "[?(@.b)]"]
)


@given(st.lists(PIECES, min_size=1, max_size=5), JSON)
def test_a_path_never_fails_whatever_the_object(pieces: list[str], obj: Any) -> None:
    assert isinstance(jsonpath.find("".join(pieces), obj), list)


@given(st.text(st.sampled_from(".[]?()@'\"*:,=<>!$ab01\\ -"), max_size=25), JSON)
def test_a_text_is_a_path_or_refused(path: str, obj: Any) -> None:
    try:
        finder = jsonpath.compile_path(path)
    except JSONPathError:
        return
    assert isinstance(finder(obj), list)
