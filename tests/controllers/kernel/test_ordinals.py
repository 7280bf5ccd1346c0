"""The journal of identities: reading it, writing it, and what it refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.kernel.names import MAX_RESERVED, Ordinals, OrdinalsError, parse_ranges, ranges, read_ordinals

TEXTS = {
    "nothing is reserved": (set(), ""),
    "one number stands alone": ({7}, "7"),
    "two neighbours are a range": ({7, 8}, "7-8"),
    "zero is a number like others": ({0, 1, 2}, "0-2"),
    "gaps are kept": ({8, 9, 10, 12}, "8-10,12"),
}


@pytest.mark.parametrize(("numbers", "text"), TEXTS.values(), ids=TEXTS.keys())
def test_reserved_numbers_are_written_as_ranges(numbers: set[int], text: str) -> None:
    assert ranges(numbers) == text
    assert parse_ranges(text) == numbers


@given(st.frozensets(st.integers(0, 999_999), max_size=200))
def test_what_is_written_is_read_back(numbers: frozenset[int]) -> None:
    assert parse_ranges(ranges(numbers)) == numbers


DAMAGED = {
    "a word": "all",
    "a backward range": "9-3",
    "an open range": "3-",
    "a negative number": "-3",
    "other digits": "٣",
    "a range that would fill the memory": f"0-{MAX_RESERVED + 1}",
    "a number longer than any ordinal": "1234567890",
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_list_is_refused_with_its_field(text: str) -> None:
    with pytest.raises(OrdinalsError, match="reserved"):
        parse_ranges(text)


REFUSED = {
    "journal is a list": {"ordinals": ["0-3"]},
    "next is text": {"ordinals": {"next": "3"}},
    "next is below zero": {"ordinals": {"next": -1}},
    "next is a truth value": {"ordinals": {"next": True}},
    "leaving is text": {"ordinals": {"next": 1, "leaving": "m-1"}},
}


@pytest.mark.parametrize("status", REFUSED.values(), ids=REFUSED.keys())
def test_a_journal_of_wrong_types_is_refused(status: dict[str, object]) -> None:
    with pytest.raises(OrdinalsError):
        read_ordinals(status)


def test_no_journal_is_an_empty_one() -> None:
    assert read_ordinals({}) == Ordinals()


def test_reserving_raises_next_and_remembers_the_numbers() -> None:
    ordinals = Ordinals(next=3).reserve(2)
    assert ordinals == Ordinals(next=5, reserved=frozenset({3, 4}))
    assert ordinals.without([3]).to_status() == {"next": 5, "reserved": "4", "leaving": None}


def test_next_stays_above_numbers_that_are_seen_in_use() -> None:
    """A backup that restores a MachineSet without its status must not give old numbers again."""
    assert Ordinals().above([4, 2]).next == 5
    assert Ordinals(next=9).above([4, 2]).next == 9


def test_a_reserved_number_above_next_raises_next() -> None:
    assert read_ordinals({"ordinals": {"next": 1, "reserved": "4-5"}}).next == 6
