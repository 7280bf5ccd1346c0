"""A tree as JSON types."""

from __future__ import annotations

from typing import Any

from controllers.kernel.conditions import format_time
from nodewright.reports.tree.branch import Branch
from nodewright.reports.tree.runbooks import runbook_for


def branch_value(branch: Branch) -> dict[str, Any]:
    """A tree as nested objects; what a line does not say is left out. ``mood``: ok, busy, wrong or paused."""
    value: dict[str, Any] = {
        "name": branch.name,
        "mood": str(branch.mood),
        "state": branch.state,
        "reason": branch.reason,
        "since": format_time(branch.since) if branch.since is not None else "",
        "message": branch.message,
        "nextStep": branch.advice,
        "runbook": runbook_for(branch.reason) if branch.advice else "",
        "children": [branch_value(child) for child in branch.children],
    }
    return {name: each for name, each in value.items() if each}
