"""How long ago: the steps at which an age gets coarser."""

from __future__ import annotations

import pytest

from nodewright.apiserver.table.wording import human_duration

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1.9, "0s"),
        (0, "0s"),
        (0.999, "0s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (2 * MINUTE + 1, "2m1s"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE + 59, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 61, "3h1m"),
        (8 * HOUR - 1, "7h59m"),
        (8 * HOUR + 59 * MINUTE, "8h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + 3 * HOUR, "2d3h"),
        (8 * DAY - 1, "7d23h"),
        (8 * DAY + 23 * HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + DAY, "2y1d"),
        (8 * YEAR - 1, "7y364d"),
        (8 * YEAR + 100 * DAY, "8y"),
    ],
)
def test_an_age_is_as_fine_as_it_matters(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text
