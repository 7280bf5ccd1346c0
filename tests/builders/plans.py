"""Read a plan in tests: what it creates, deletes, writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controllers.kernel.actions import Create, Delete, Event, Patch
from controllers.kernel.plan import Plan
from controllers.kernel.refs import Kind


def creates(plan: Plan) -> list[Mapping[str, Any]]:
    return [action.body for action in plan.actions() if isinstance(action, Create)]


def created_names(plan: Plan) -> list[str]:
    return [body["metadata"]["name"] for body in creates(plan)]


def deletes(plan: Plan) -> list[str]:
    return [action.target.key.name for action in plan.actions() if isinstance(action, Delete)]


def patches(plan: Plan, kind: Kind | None = None, subresource: str = "") -> dict[str, Patch]:
    """By name of the target."""
    return {
        action.target.key.name: action
        for action in plan.actions()
        if isinstance(action, Patch)
        and action.subresource == subresource
        and (kind is None or action.target.kind == kind)
    }


def status_of(plan: Plan) -> dict[str, Any]:
    """The status patch; {} if there is none."""
    found = [action for action in plan.actions() if isinstance(action, Patch) and action.subresource == "status"]
    return dict(found[0].patch.get("status") or {}) if found else {}


def condition_of(plan: Plan, type_: str) -> dict[str, Any]:
    """A condition in the status patch; {} if it is not there."""
    return next((c for c in status_of(plan).get("conditions", ()) if c["type"] == type_), {})


def sizes(plan: Plan) -> dict[str, int]:
    """Replicas that are set, by name of the MachineSet."""
    return {
        name: patch.patch["spec"]["replicas"]
        for name, patch in patches(plan).items()
        if "replicas" in patch.patch.get("spec", {})
    }


def events(plan: Plan) -> list[str]:
    return [action.why for action in plan.actions() if isinstance(action, Event)]
