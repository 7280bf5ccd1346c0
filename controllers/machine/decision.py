"""What one reconcile decides about a Machine, before it is put into a Plan: values that the status is written from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from api.conditions import MachineCondition, Reason
from controllers.kernel.conditions import Condition
from controllers.kernel.plan import Outcome, Settled, Step
from controllers.machine.phases import Stage

SETTLED = Settled()


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason for programs, and its text for people."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Decision:
    """``stage`` None and a condition None mean: nothing is known that could change what the status says of it.

    ``record`` holds further keys of the status, None removing them. ``steps`` run after the status was written.
    """

    stage: Stage | None
    steps: tuple[Step, ...] = ()
    outcome: Outcome = SETTLED
    infrastructure: Condition | None = None
    up_to_date: Condition | None = None
    extra: tuple[Condition, ...] = ()
    failure: Cause | None = None
    """Terminal: only a person or another spec helps."""
    record: Mapping[str, Any] = field(default_factory=dict)
    warning: Cause | None = None
    """A reason and text worth an Event when the reason is new."""
    news: Cause | None = None
    """The same for an Event of type Normal: something begins that nobody may expect. Decided in one reconcile only."""


def infrastructure(status: bool | None, reason: str, message: str = "") -> Condition:
    return Condition(MachineCondition.INFRASTRUCTURE_READY, _text(status), str(reason), message)


def up_to_date(status: bool | None, reason: str, message: str = "") -> Condition:
    return Condition(MachineCondition.UP_TO_DATE, _text(status), str(reason), message)


def condition(type_: str, status: bool | None, reason: str, message: str = "") -> Condition:
    return Condition(str(type_), _text(status), str(reason), message)


def _text(status: bool | None) -> Any:
    return {True: "True", False: "False", None: "Unknown"}[status]


IS_UP_TO_DATE = up_to_date(True, Reason.UP_TO_DATE)
