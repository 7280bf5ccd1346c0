"""A reboot that a MachineHealthCheck asks for, as the status of its Machine holds it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from api.meta import Count, Time
from api.model import Model


class RequestedReboot(Model):
    """The last reboot that was asked for. ``HostRebooted`` among the conditions says what became of it."""

    attempt: Annotated[str, Field(max_length=63)]
    """Which one: another for each that is asked for."""
    number: Count
    """How many were asked for one after the other, this one counted."""
    requested_at: Time
    """When it was asked for."""
    deadline: Time
    """When it counts as one that did not help."""
