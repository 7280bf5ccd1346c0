"""Counts and percentages, durations, times and quantities."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.durations import format_duration, format_time, parse_duration, parse_time
from api.intorstring import IntOrStringError, percent, resolve
from api.quantity import parse_quantity


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "want_surge", "want_unavailable"),
    [
        (10, "25%", "25%", 3, 2),
        (1, 0, "25%", 0, 0),
        (3, 1, 0, 1, 0),
        (3, "35%", 0, 2, 0),
        (0, 1, 0, 1, 0),
        (4, 0, 10, 0, 10),
    ],
)
def test_surge_rounds_up_and_unavailable_down(
    replicas: int, surge: int | str, unavailable: int | str, want_surge: int, want_unavailable: int
) -> None:
    """The arithmetic vectors of the lineage; caps and the least of one are the planner's."""
    assert resolve(surge, replicas, "up") == want_surge
    assert resolve(unavailable, replicas, "down") == want_unavailable


@pytest.mark.parametrize(
    "value", [-1, "-1%", "25", "2.5%", "%", "", "00%", "12345%", True, None, 1.5, [1], "٣%", "5%\n"]
)
def test_what_is_neither_count_nor_percentage_is_refused(value: Any) -> None:
    with pytest.raises(IntOrStringError):
        resolve(value, 10, "up")


@given(st.integers(0, 9999), st.integers(0, 100000))
def test_rounding_up_and_down_differ_by_less_than_one(share: int, total: int) -> None:
    low, high = resolve(f"{share}%", total, "down"), resolve(f"{share}%", total, "up")
    assert low * 100 <= share * total <= high * 100
    assert high - low in (0, 1)


def test_only_percentages_have_a_percentage() -> None:
    assert percent("30%") == 30
    assert percent(30) is None
    assert percent("thirty") is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("0s", 0), ("90s", 90), ("1h30m", 5400), ("10m0s", 600), ("1.5h", 5400), ("250ms", 0.25)],
)
def test_durations_are_read_as_go_reads_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "5", "5 minutes", "-5m", "m", "1d", "5m ", "1e3s", "999999999h", "1s" * 20])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|century"):
        parse_duration(text)


@given(st.integers(0, 10**10))
def test_a_duration_survives_being_written_and_read(millis: int) -> None:
    duration = timedelta(milliseconds=millis)
    assert parse_duration(format_duration(duration)) == duration


def test_a_negative_duration_is_not_written() -> None:
    with pytest.raises(ValueError, match="negative"):
        format_duration(timedelta(seconds=-1))


def test_times_are_written_in_utc_with_whole_seconds() -> None:
    moment = datetime(2026, 11, 20, 9, 30, 15, 999999, tzinfo=timezone(timedelta(hours=1)))
    assert format_time(moment) == "2026-11-20T08:30:15Z"
    assert parse_time("2026-11-20T09:30:15.5+01:00") == datetime(2026, 11, 20, 8, 30, 15, 500000, tzinfo=UTC)


def test_times_without_a_zone_are_refused() -> None:
    with pytest.raises(ValueError, match="zone"):
        parse_time("2026-11-20T08:30:15")
    with pytest.raises(ValueError, match="zone"):
        format_time(datetime(2026, 11, 20))  # noqa: DTZ001 - the point of the test


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 4),
        (4, 4),
        ("500m", "0.5"),
        ("2Gi", 2 * 1024**3),
        ("1.5G", 1500000000),
        ("1e3", 1000),
        ("1E", 10**18),
        ("1Ei", 2**60),
        (".5", "0.5"),
        ("-1", -1),
        ("100u", "0.0001"),
        ("1E3", 1000),
    ],
)
def test_quantities_are_exact(text: str | int, value: Any) -> None:
    assert parse_quantity(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "4 Gi", "Gi", "1KB", "1ki", "1e", "1.2.3", "0x10", "9" * 65, True])
def test_what_is_no_quantity_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="quantity"):
        parse_quantity(text)
