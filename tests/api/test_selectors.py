"""Label selectors: reading both forms, matching, and the canonical text that stands in status.labelSelector."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.selectors import EVERYTHING, NOTHING, SelectorError, from_label_selector, matches, parse

LABELS = {"pool": "a", "tier": "web", "example.com/size": "3", "empty": ""}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", True),
        ("pool=a", True),
        ("pool==a", True),
        ("pool = a , tier = web", True),
        ("pool=b", False),
        ("pool!=b", True),
        ("pool!=a", False),
        ("missing!=a", True),
        ("pool in (a, b)", True),
        ("pool in (b)", False),
        ("pool notin (b)", True),
        ("missing notin (b)", True),
        ("pool notin (a)", False),
        ("pool", True),
        ("missing", False),
        ("!missing", True),
        ("! pool", False),
        ("example.com/size>2", True),
        ("example.com/size>3", False),
        ("example.com/size<4", True),
        ("pool>2", False),
        ("missing<2", False),
        ("empty=", True),
        ("empty=,pool=a", True),
        ("pool=", False),
        ("empty in (,x)", True),
        ("pool=a,tier!=web", False),
    ],
)
def test_text_selects_as_kubectl_does(text: str, want: bool) -> None:
    assert parse(text).matches(LABELS) is want


@pytest.mark.parametrize(
    "text",
    [
        *["=a", "pool in a", "pool in (a", "pool in ()x", "pool=a=b", "pool ~ a", ",", "pool,", "!", "a b", "pool>x"],
        *["-pool=a", "pool=-a", f"{'a' * 64}=b", f"pool={'a' * 64}", "UPPER.example/a/b=c", "a" * 20000],
    ],
)
def test_unreadable_text_is_refused(text: str) -> None:
    with pytest.raises(SelectorError):
        parse(text)


@pytest.mark.parametrize(
    ("selector", "want"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"pool": "a"}}, True),
        ({"matchLabels": {"pool": "a", "tier": "db"}}, False),
        ({"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}]}, True),
        ({"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["a"]}]}, False),
        ({"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}, True),
        ({"matchLabels": {"pool": "a"}, "matchExpressions": [{"key": "zone", "operator": "Exists"}]}, False),
    ],
)
def test_objects_select_by_all_their_parts(selector: dict[str, Any] | None, want: bool) -> None:
    assert matches(selector, LABELS) is want


@pytest.mark.parametrize(
    ("selector", "field"),
    [
        ({"matchLabels": {"a b": "c"}}, "matchLabels[a b]"),
        ({"matchLabels": {"a": 3}}, "matchLabels[a]"),
        ({"matchLabels": ["a"]}, "matchLabels"),
        ({"matchExpressions": {}}, ""),
        ({"matchExpressions": ["x"]}, "matchExpressions[0]"),
        ({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}, "matchExpressions[0].operator"),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}, "matchExpressions[0].values"),
        ({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}, "matchExpressions[0].values"),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": "xy"}]}, "matchExpressions[0].values"),
    ],
)
def test_an_unreadable_object_names_its_field(selector: dict[str, Any], field: str) -> None:
    if not field:
        assert from_label_selector(selector) == EVERYTHING
        return
    with pytest.raises(SelectorError) as caught:
        from_label_selector(selector)
    assert caught.value.field == field


def test_nothing_selects_nothing_and_everything_everything() -> None:
    assert not NOTHING.matches(LABELS)
    assert not NOTHING.empty
    assert EVERYTHING.matches({})
    assert EVERYTHING.empty


def test_canonical_text_is_sorted_whatever_the_order_given() -> None:
    one = from_label_selector({"matchLabels": {"b": "2", "a": "1"}})
    two = from_label_selector({"matchLabels": {"a": "1", "b": "2"}})
    assert str(one) == str(two) == "a=1,b=2"


_KEYS = st.sampled_from(["pool", "tier", "example.com/x", "empty"])
_VALUES = st.sampled_from(["a", "b-c", "1", ""])
_EXPRESSIONS = st.one_of(
    st.builds(
        lambda key, operator, values: {"key": key, "operator": operator, "values": values},
        _KEYS,
        st.sampled_from(["In", "NotIn"]),
        st.lists(_VALUES, min_size=1, max_size=3),
    ),
    st.builds(
        lambda key, operator: {"key": key, "operator": operator}, _KEYS, st.sampled_from(["Exists", "DoesNotExist"])
    ),
)
_SELECTORS = st.fixed_dictionaries(
    {"matchLabels": st.dictionaries(_KEYS, _VALUES), "matchExpressions": st.lists(_EXPRESSIONS, max_size=3)}
)


@given(_SELECTORS, st.dictionaries(_KEYS, _VALUES))
def test_the_canonical_text_means_the_same_as_the_object(selector: dict[str, Any], labels: dict[str, str]) -> None:
    """The scale subresource hands out the text; a HorizontalPodAutoscaler must find the same Machines by it."""
    compiled = from_label_selector(selector)
    assert parse(str(compiled)).matches(labels) == compiled.matches(labels)


@given(_SELECTORS)
def test_reading_the_canonical_text_gives_it_back(selector: dict[str, Any]) -> None:
    text = str(from_label_selector(selector))
    assert str(parse(text)) == text


def _refusal(text: str) -> str:
    try:
        parse(text)
    except SelectorError as error:
        return error.message
    return "read"


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_with_a_message(text: str) -> None:
    assert _refusal(text)
