"""Cron schedules in UTC, and the stretches of time that begin with them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cronsim import CronSim, CronSimError

SCHEDULE_PATTERN = r"^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|\S+( +\S+){4})$"
"""Five fields, or one of the words that crontab has for them."""
MAX_SCHEDULE = 128
_WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class ScheduleError(ValueError):
    """Not a cron schedule; the message says what it is not."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """From ``begins`` until before ``ends``; both in UTC."""

    begins: datetime
    ends: datetime

    def holds(self, moment: datetime) -> bool:
        return self.begins <= moment < self.ends


def check_schedule(text: object) -> None:
    """Raises ScheduleError unless ``text`` is a schedule that strikes at some time."""
    if not isinstance(text, str) or len(text) > MAX_SCHEDULE:
        raise ScheduleError(f"{text!r} is not a cron schedule like 0 2 * * sat")
    _strikes(text, datetime(2000, 1, 1, tzinfo=UTC), back=False)


def last_stretch(text: str, duration: timedelta, now: datetime) -> Stretch | None:
    """The one that began last, at ``now`` or before; it may be over. None if none ever began.

    Raises ScheduleError. Where stretches overlap, the one that began last is also the one that ends last.
    """
    begins = _strikes(text, now + timedelta(seconds=1), back=True)
    return Stretch(begins, begins + duration) if begins else None


def next_begin(text: str, now: datetime) -> datetime | None:
    """When the next one begins, after ``now``. Raises ScheduleError."""
    return _strikes(text, now, back=False)


def _strikes(text: str, moment: datetime, *, back: bool) -> datetime | None:
    fields = _WORDS.get(text.strip(), text)
    if len(fields.split()) != 5:
        raise ScheduleError(f"{text!r} is not a cron schedule like 0 2 * * sat: it has not five fields")
    try:
        found = next(CronSim(fields, moment.astimezone(UTC), reverse=back), None)
    except CronSimError as error:
        raise ScheduleError(f"{text!r} is not a cron schedule like 0 2 * * sat: {error}") from None
    if found is None and not back:
        raise ScheduleError(f"{text!r} never strikes")
    return found
