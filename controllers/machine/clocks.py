"""When each stage of a deletion began: ``status.deletion``, written once each, since deadlines count from there."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from controllers.kernel.conditions import format_time, parse_time
from controllers.machine.observe import Observed

DRAIN = "nodeDrainStartTime"
VOLUMES = "waitForNodeVolumeDetachStartTime"
PRE_TERMINATE = "waitForPreTerminateHookStartTime"
HOST = "hostDeletionStartTime"
NODE = "nodeDeletionStartTime"

Record = Mapping[str, Any]
"""Keys of the status to write, as a Decision holds them."""


def read(observed: Observed, clock: str) -> datetime | None:
    """None if that stage has not begun."""
    found = observed.status.get("deletion")
    return parse_time(found.get(clock)) if isinstance(found, Mapping) else None


def started(observed: Observed, *begun: str) -> Record:
    """The record that starts those of the clocks that don't run yet."""
    new = {clock: format_time(observed.now) for clock in begun if read(observed, clock) is None}
    return {"deletion": new} if new else {}
