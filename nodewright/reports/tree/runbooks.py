"""Where the documentation says more of a reason: what it means, how to look, what to do."""

from __future__ import annotations

from typing import Final

from nodewright.reports.tree.advice import advice_for

PAGE: Final = "docs/runbooks.md"
FLEET_REASONS: Final = frozenset({"NotServed", "OrphanHost", "TwoControllers", "AutoscalerNotRunning"})
"""Reasons of ``nodewright status`` that are no condition's."""


def runbook_for(reason: str) -> str:
    """``docs/runbooks.md#quotaexceeded``; "" for a reason that nobody has to do anything about."""
    return f"{PAGE}#{reason.lower()}" if reason in FLEET_REASONS or advice_for(reason) else ""


def with_runbook(step: str, reason: str) -> str:
    """``step`` with the page that has more, unless it names one itself; "" stays ""."""
    page = runbook_for(reason)
    return f"{step} See {page}." if step and page and "docs/" not in step else step
