"""When what happened of one run: where the seconds went, from the pods that came to those that run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from controllers.kernel.conditions import find, is_true

STAGES = (
    "pods made",
    "pods called Unschedulable",
    "Nodes asked for",
    "Machines made",
    "Nodes made",
    "Nodes Ready",
    "pods bound",
    "pods Running",
)


@dataclass(slots=True)
class Stages:
    """Stage → seconds (monotonic) at which it went one further. What goes back is not counted."""

    at: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in STAGES})
    _seen: dict[str, set[str]] = field(default_factory=lambda: {name: set() for name in STAGES})
    _sizes: dict[str, int] = field(default_factory=dict)

    def passed(self, stage: str, uid: str) -> None:
        if uid not in self._seen[stage]:
            self._seen[stage].add(uid)
            self.at[stage].append(time.monotonic())

    def pod(self, body: Mapping[str, Any]) -> None:
        uid, status = body["metadata"]["uid"], body.get("status") or {}
        self.passed("pods made", uid)
        scheduled = find(status.get("conditions"), "PodScheduled") or {}
        if scheduled.get("reason") == "Unschedulable":
            self.passed("pods called Unschedulable", uid)
        if body["spec"].get("nodeName"):
            self.passed("pods bound", uid)
        if is_true(status.get("conditions"), "Ready"):
            self.passed("pods Running", uid)

    def node(self, body: Mapping[str, Any]) -> None:
        self.passed("Nodes made", body["metadata"]["uid"])
        if is_true((body.get("status") or {}).get("conditions"), "Ready"):
            self.passed("Nodes Ready", body["metadata"]["uid"])

    def machine(self, body: Mapping[str, Any]) -> None:
        self.passed("Machines made", body["metadata"]["uid"])

    def group(self, body: Mapping[str, Any]) -> None:
        """A MachineDeployment: each replica more is a Node that was asked for."""
        uid, size = body["metadata"]["uid"], body["spec"].get("replicas") or 0
        for number in range(self._sizes.get(uid, 0), size):
            self.passed("Nodes asked for", f"{uid}/{number}")
        self._sizes[uid] = size

    def since(self, started: float) -> dict[str, Sequence[float]]:
        """Stage → when it began, was half done and ended, in seconds after ``started``; only what happened since."""
        found: dict[str, Sequence[float]] = {}
        for name, times in self.at.items():
            after = [time - started for time in times if time >= started]
            if after:
                found[name] = (after[0], after[len(after) // 2], after[-1], float(len(after)))
        return found


def table(title: str, stages: Mapping[str, Sequence[float]], plane: Mapping[str, float]) -> Table:
    """``plane``: CPU seconds of Kubernetes' own parts."""
    found = Table(
        *("", "first", "half", "last", "how many"),
        title=f"{title}: seconds after the Deployments were sent",
        caption=f"CPU seconds: {', '.join(f'{name} {spent:.1f}' for name, spent in plane.items())}",
    )
    for name, (first, half, last, count) in stages.items():
        found.add_row(name, f"{first:.1f}", f"{half:.1f}", f"{last:.1f}", f"{count:.0f}")
    return found
