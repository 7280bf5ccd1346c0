"""Status of CapacityBuffers and CapacityQuotas: what they have, and why not more. Written only if it changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from api import capacity_names
from api.capacity_conditions import BufferCondition, CapacityReason, QuotaCondition
from controllers.autoscaler.buffer_growth import BufferOutcome
from controllers.autoscaler.decision import Decision
from controllers.autoscaler.observe import Observed
from controllers.autoscaler.quotas import Quota, spelled
from controllers.kernel.actions import Event, Patch
from controllers.kernel.conditions import Condition, Moment, counted, find, merge_in_place, merge_patch, some_of
from controllers.kernel.refs import Obj, Ref, generation_of, mapping, resource_version_of

_MOST_GROUPS = 3
_WITH_EVENT = (
    CapacityReason.FITS_EXISTING_CAPACITY,
    CapacityReason.REQUIRES_NEW_CAPACITY,
    CapacityReason.QUOTA_LEAVES_LESS,
    CapacityReason.POD_TEMPLATE_NOT_FOUND,
    CapacityReason.SCALABLE_REF_NOT_FOUND,
    CapacityReason.RESOLUTION_FAILED,
)
"""Reasons of which an event tells."""


def capacity_writes(observed: Observed, decision: Decision) -> Iterator[Patch]:
    """Nothing while nothing is decided: what was written stands."""
    now = observed.cluster.now
    for outcome in decision.buffers:
        buffer = outcome.buffer
        conditions = [_ready(outcome), _provisioning(outcome), _limited(outcome)]
        status = _with_conditions(buffer.body, conditions, Moment(generation_of(buffer.body), now))
        yield from _patched(buffer.ref, buffer.body, {**_of_buffer(outcome), **status})
    for quota in observed.cluster.capacity.quotas if not decision.frozen else ():
        condition = _reconciled(quota)
        status = _with_conditions(quota.body, [condition], Moment(generation_of(quota.body), now))
        yield from _patched(quota.ref, quota.body, {**_of_quota(quota), **status})


def capacity_events(decision: Decision) -> Iterator[Event]:
    """On a buffer whose condition gets another reason: what is new, with the reason as its name."""
    for outcome in decision.buffers:
        buffer = outcome.buffer
        before = mapping(buffer.body.get("status")).get("conditions")
        for condition in (_ready(outcome), _provisioning(outcome), _limited(outcome)):
            previous = (find(before, condition.type) or {}).get("reason")
            if condition.reason in _WITH_EVENT and condition.reason != previous:
                yield Event(buffer.ref, _kind(condition, outcome), str(condition.reason), condition.message)


def _kind(condition: Condition, outcome: BufferOutcome) -> Literal["Normal", "Warning"]:
    """A warning where somebody has to do something: a field, a quota, or groups that may not grow."""
    waits = condition.reason == CapacityReason.REQUIRES_NEW_CAPACITY and not outcome.short
    return "Normal" if waits or condition.reason == CapacityReason.FITS_EXISTING_CAPACITY else "Warning"


def _patched(ref: Ref, body: Obj, status: dict[str, Any]) -> Iterator[Patch]:
    patch = merge_patch(mapping(body.get("status")), status)
    if patch:
        yield Patch(ref, {"status": patch}, "its status is out of date", "status", resource_version_of(body))


def _with_conditions(body: Obj, decided: Sequence[Condition], moment: Moment) -> dict[str, Any]:
    before = mapping(body.get("status")).get("conditions")
    return {"conditions": merge_in_place(before, decided, [each.type for each in decided], moment)}


def _of_buffer(outcome: BufferOutcome) -> dict[str, Any]:
    buffer, template = outcome.buffer, outcome.buffer.template
    return {
        "provisioningStrategy": capacity_names.ACTIVE_CAPACITY if buffer.chunk else None,
        "replicas": buffer.count if buffer.chunk else None,
        "podTemplateRef": {"name": template.name} if template else None,
        "podTemplateGeneration": template.generation if template else None,
    }


def _ready(outcome: BufferOutcome) -> Condition:
    buffer = outcome.buffer
    known = buffer.chunk is not None
    return Condition(BufferCondition.READY_FOR_PROVISIONING, "True" if known else "False", buffer.reason, buffer.why)


def _provisioning(outcome: BufferOutcome) -> Condition:
    type_, buffer = BufferCondition.PROVISIONING, outcome.buffer
    if buffer.chunk is None:
        return Condition(type_, "False", CapacityReason.NOT_READY_FOR_PROVISIONING, "")
    if not buffer.count:
        return Condition(type_, "False", CapacityReason.BUFFER_EMPTY, "")
    text = f"{outcome.placed} of {counted(buffer.count, 'chunk')} fit"
    if outcome.placed == buffer.count:
        return Condition(type_, "True", CapacityReason.FITS_EXISTING_CAPACITY, text)
    grown = [f"{counted(nodes, 'Node')} of {group}" for group, nodes in sorted(outcome.added.items())]
    parts = [text, *([f"adding {some_of(grown, _MOST_GROUPS)}"] if grown else [])]
    if outcome.short:
        why = [f"{group}: {reason}" for group, reason in sorted(outcome.why.items())]
        parts.append(": ".join([f"{outcome.short} fit nowhere", *filter(None, [some_of(why, _MOST_GROUPS, "; ")])]))
    return Condition(type_, "False", CapacityReason.REQUIRES_NEW_CAPACITY, "; ".join(parts))


def _limited(outcome: BufferOutcome) -> Condition:
    limited = outcome.buffer.limited
    reason = CapacityReason.QUOTA_LEAVES_LESS if limited else CapacityReason.WITHIN_QUOTAS
    return Condition(BufferCondition.LIMITED_BY_QUOTAS, "True" if limited else "False", reason, limited)


def _reconciled(quota: Quota) -> Condition:
    if quota.problem:
        return Condition(QuotaCondition.RECONCILED, "False", CapacityReason.RECONCILIATION_FAILED, quota.problem)
    return Condition(QuotaCondition.RECONCILED, "True", CapacityReason.RECONCILIATION_SUCCEEDED, "")


def _of_quota(quota: Quota) -> dict[str, Any]:
    """Resources that are limited no more go from the status."""
    before = mapping(mapping(mapping(quota.body.get("status")).get("used")).get("resources"))
    used: dict[str, str | None] = dict.fromkeys(before)
    used |= {resource: spelled(resource, amount) for resource, amount in quota.used.items()}
    return {"observedGeneration": generation_of(quota.body), "used": None if quota.problem else {"resources": used}}
