"""``spec.rollout.after``: other Machines of the same template once a time has come (CAPI's word).

The time becomes a part of the template that is in force, as a restart does, so that a rollout of it is one like any
other: with its revision, budgets, windows, rollback. It stays a part of it when the field is taken away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from api import names
from controllers.kernel.conditions import format_time, parse_time
from controllers.kernel.refs import Obj, spec_of
from controllers.kernel.template import rollout_part, template_problem

_PART = "rolloutAfter"


def in_force(template: Mapping[str, Any], sets: Sequence[Obj], after: datetime | None, now: datetime) -> dict[str, Any]:
    """``template`` with the last such time that has come.

    A MachineSet of the template that was made since needs no other. ``sets``: those of the MachineDeployment.
    """
    want = _without(rollout_part(template))
    same = [body for body in sets if _without(_part(body)) == want]
    times = [str(_part(body)[_PART]) for body in same if _part(body).get(_PART)]
    if after is not None and after <= now and not any(_is_made_since(body, after) for body in same) and same:
        times.append(format_time(after))
    if not times:
        return dict(template)
    metadata = dict(template.get("metadata") or {})
    metadata["annotations"] = {**(metadata.get("annotations") or {}), names.ROLLOUT_AFTER_ANNOTATION: max(times)}
    return {**template, "metadata": metadata}


def seconds_until(after: datetime | None, now: datetime) -> float:
    """0 if there is no such time, or it has come."""
    return max((after - now).total_seconds(), 0.0) if after is not None else 0.0


def _part(body: Obj) -> dict[str, Any]:
    template = spec_of(body).get("template")
    return rollout_part(template) if isinstance(template, Mapping) and not template_problem(template) else {}


def _without(part: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key != _PART}


def _is_made_since(body: Obj, moment: datetime) -> bool:
    made = parse_time(body["metadata"].get("creationTimestamp"))
    return made is not None and made >= moment
