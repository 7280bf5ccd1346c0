"""The journal of a rollout: which sizes were decided on which versions of the MachineSets.

It lives in ``status.rollout`` as ``{at: time, sets: [{name, version, replicas}]}`` and is written, guarded by the
MachineDeployment's resourceVersion, before MachineSets are scaled. A MachineSet that still shows the version on which
its size was decided may or may not have been scaled already, so nothing more is decided until that is known: a view
that lags in one of several MachineSets can't take a second share of the same budget (CAPI#9334).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from api import names
from controllers.kernel.actions import Patch
from controllers.kernel.conditions import format_time, parse_time
from controllers.kernel.refs import resource_version_of
from controllers.machinedeployment.observe import Observed, SetState
from controllers.machinedeployment.targets import Targets

PATIENCE = 2.0
"""Seconds within which the effect of a decided size should be visible."""


@dataclass(frozen=True, slots=True)
class Intent:
    """``replicas`` was decided for the MachineSet ``name`` when it had the resourceVersion ``version``."""

    name: str
    version: str
    replicas: int


def decided_at(observed: Observed) -> datetime | None:
    """When sizes were last decided."""
    found = observed.status.get("rollout")
    return parse_time(found.get("at")) if isinstance(found, Mapping) else None


def outstanding(observed: Observed) -> list[SetState]:
    """MachineSets of which it is not known whether they got their decided size."""
    versions = {intent.name: intent for intent in _read(observed.status)}
    return [
        state
        for state in observed.sets
        if state.name in versions
        and versions[state.name].version == resource_version_of(state.body)
        and versions[state.name].replicas != state.replicas
    ]


def is_fresh(observed: Observed) -> bool:
    """The decision is so young that its effect may just not be visible yet."""
    at = decided_at(observed)
    return at is not None and observed.now - at < timedelta(seconds=PATIENCE)


def touches(observed: Observed, states: list[SetState]) -> list[Patch]:
    """Writes that settle it: each succeeds only if the decided size was *not* applied, and then shows a new version."""
    return [
        Patch(
            state.ref,
            {"metadata": {"annotations": {names.TOUCHED_ANNOTATION: format_time(observed.now)}}},
            why=f"learn whether MachineSet {state.name} got the size that was decided",
            resource_version=resource_version_of(state.body),
        )
        for state in states
    ]


def to_status(observed: Observed, targets: Targets) -> dict[str, Any]:
    """The journal to write before these sizes are applied; {} if no size changes."""
    sets = [
        {"name": state.name, "version": resource_version_of(state.body), "replicas": targets.of(state)}
        for state in observed.sets
        if targets.of(state) != state.replicas
    ]
    return {"rollout": {"at": format_time(observed.now), "sets": sets}} if sets else {}


def _read(status: Mapping[str, Any]) -> list[Intent]:
    """A damaged journal decides nothing: then only the guards on each MachineSet protect."""
    found = status.get("rollout")
    sets = found.get("sets") if isinstance(found, Mapping) else None
    intents = []
    for entry in sets if isinstance(sets, list) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("replicas"), int):
            intents.append(Intent(str(entry.get("name", "")), str(entry.get("version", "")), entry["replicas"]))
    return intents
