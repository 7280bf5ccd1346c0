"""How many examples a property gets: a few in ``make test``, the same ones each time, so that it fails for a change and
never by chance; ten times as many in ``make test-long``, others each time.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

USUAL = 40
"""Examples of a property that doesn't say its own number."""


def register() -> None:
    """Both numbers as profiles. Neither measures time: a busy machine breaks no property."""
    inherited = settings.default
    for profile, times in (("usual", 1), ("thorough", 10)):
        settings.register_profile(
            profile,
            parent=inherited,
            max_examples=USUAL * times,
            deadline=None,
            derandomize=profile == "usual",
            suppress_health_check=[HealthCheck.too_slow],
        )
    settings.load_profile("usual")


def usually(number: int) -> settings:
    """For a property whose examples are dear: so many in ``make test``."""
    return settings(max_examples=number * settings.default.max_examples // USUAL)
