"""Cron in UTC: when stretches of time begin and end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.schedules import ScheduleError, check_schedule, last_stretch, next_begin

MONDAY_NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_the_last_stretch_may_have_begun_this_very_moment() -> None:
    found = last_stretch("0 12 * * *", HOUR, MONDAY_NOON)
    assert found is not None
    assert found.begins == MONDAY_NOON
    assert found.holds(MONDAY_NOON)
    assert not found.holds(MONDAY_NOON + HOUR)


def test_the_next_one_never_begins_now() -> None:
    assert next_begin("0 12 * * *", MONDAY_NOON) == MONDAY_NOON + 24 * HOUR


def test_schedules_are_in_utc_whatever_zone_the_clock_has() -> None:
    there = MONDAY_NOON.astimezone(timezone(timedelta(hours=5)))
    assert next_begin("30 12 * * *", there) == MONDAY_NOON + timedelta(minutes=30)


@pytest.mark.parametrize(
    ("word", "same"), [("@hourly", "0 * * * *"), ("@daily", "0 0 * * *"), ("@weekly", "0 0 * * 0")]
)
def test_words_mean_what_crontab_says(word: str, same: str) -> None:
    assert next_begin(word, MONDAY_NOON) == next_begin(same, MONDAY_NOON)


@pytest.mark.parametrize(
    "text", ["", "x", "* * * *", "* * * * * *", "61 * * * *", "0 0 30 2 *", None, 7, "@never"], ids=repr
)
def test_what_is_no_schedule_is_refused(text: object) -> None:
    with pytest.raises(ScheduleError):
        check_schedule(text)


@given(st.integers(0, 400 * 24 * 3600), st.integers(1, 200))
def test_of_overlapping_stretches_the_last_to_begin_ends_last(seconds: int, hours: int) -> None:
    now = MONDAY_NOON + timedelta(seconds=seconds)
    found = last_stretch("0 */6 * * *", timedelta(hours=hours), now)
    assert found is not None
    assert found.begins <= now < found.begins + timedelta(hours=6)
