"""What processes have found and no object shows (``nodewright.runtime.fleet.findings``), as lines of the fleet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from controllers.kernel.conditions import counted
from nodewright.reports.fleet.problem import Problem
from nodewright.reports.tree.serving import Serving
from nodewright.runtime.fleet.findings import since_of

_PAUSED_STEP: Final = "See whether the provider's API is up and its credentials are current; calls go on by themselves."
_LEFT_STEP: Final = (
    "Remove the host in the cloud by its id, or run with `--orphan-hosts=delete` (docs/tasks/orphan-hosts.md)."
)
_GOING_STEP: Final = "Nothing: those with the mark of this cluster are removed, a tenth of an account each minute."


def found_by(serving: Serving) -> Iterator[Problem]:
    """Accounts whose calls pause, one line each, and all hosts that no Machine knows in one line."""
    for one in serving.findings.accounts:
        yield Problem("", "", f"Account/{one.what}", "Unavailable", one.why, since_of(one), _PAUSED_STEP)
    if not serving.findings.removes:
        yield from _orphans(serving, _LEFT_STEP)


def removed_by(serving: Serving) -> Iterator[Problem]:
    """Hosts that no Machine knows and that the process removes."""
    if serving.findings.removes:
        yield from _orphans(serving, _GOING_STEP)


def _orphans(serving: Serving, step: str) -> Iterator[Problem]:
    orphans, in_all = serving.findings.orphans, serving.findings.orphans_in_all
    if not orphans:
        return
    first = orphans[0]
    title = f"Host/{first.what}" if in_all == 1 else counted(in_all, "host")
    message = first.why if in_all == 1 else f"{first.what}: {first.why} (and {in_all - 1} more)"
    yield Problem("", "", title, "OrphanHost", message, since_of(first), step)
