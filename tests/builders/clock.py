"""One fixed moment for all tests: time is an input, so no test reads a clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from controllers.kernel.conditions import format_time

NOW = datetime(2026, 6, 1, 12, 0, 0, tzinfo=UTC)
"""What ``view.now`` says unless a test moves it."""


def ago(seconds: float) -> str:
    """The RFC 3339 time so many seconds before NOW."""
    return format_time(NOW - timedelta(seconds=seconds))
