"""What a provider found when it looked in its cloud for what a config names, as a condition. Never in admission.

An image that is missing now may be there tomorrow: nothing is refused for it, and nothing terminal is said.
"""

from __future__ import annotations

from api.conditions import Reason
from controllers.kernel.conditions import Condition
from controllers.kernel.view import ConfigChecked, LiveCheck, LoginRefused, NotChecked
from controllers.kernel.wording import in_words
from providers.base.errors import ErrorClass


def condition(type_: str, live: LiveCheck, below: str = "") -> Condition | None:
    """None if nobody can say. ``below`` goes before the fields that are named."""
    match live:
        case NotChecked():
            return None
        case LoginRefused(why):
            return Condition(str(type_), "False", str(ErrorClass.UNAUTHORIZED), why)
        case ConfigChecked(()):
            return Condition(str(type_), "True", str(Reason.FOUND))
        case ConfigChecked(problems):
            return Condition(str(type_), "False", str(Reason.INVALID_CONFIGURATION), in_words(problems, below))
