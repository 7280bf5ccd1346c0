"""Status of CapacityBuffers and CapacityQuotas: what they have, and why not more. Written when it changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from api import capacity_names
from api.capacity_conditions import BufferCondition, CapacityReason, QuotaCondition
from controllers.autoscaler.decision import Decision
from controllers.autoscaler.holding import Held
from controllers.autoscaler.observe import Observed
from controllers.autoscaler.quotas import Quota, spelled
from controllers.kernel.actions import Patch
from controllers.kernel.conditions import Condition, Moment, merge_in_place, merge_patch
from controllers.kernel.refs import Obj, Ref, generation_of, mapping, resource_version_of
from controllers.kernel.wording import counted, some_of

_MOST_GROUPS = 3


def capacity_writes(observed: Observed, decision: Decision) -> Iterator[Patch]:
    """Nothing while nothing is decided: what was written stands."""
    now = observed.cluster.now
    for held in decision.held:
        buffer = held.buffer
        conditions = [_ready(held), _provisioning(held), _limited(held)]
        status = _with_conditions(buffer.body, conditions, Moment(generation_of(buffer.body), now))
        yield from _patched(buffer.ref, buffer.body, {**_of_buffer(held), **status})
    for quota in observed.cluster.capacity.quotas if not decision.frozen else ():
        condition = _reconciled(quota)
        status = _with_conditions(quota.body, [condition], Moment(generation_of(quota.body), now))
        yield from _patched(quota.ref, quota.body, {**_of_quota(quota), **status})


def _patched(ref: Ref, body: Obj, status: dict[str, Any]) -> Iterator[Patch]:
    patch = merge_patch(mapping(body.get("status")), status)
    if patch:
        yield Patch(ref, {"status": patch}, "its status is out of date", "status", resource_version_of(body))


def _with_conditions(body: Obj, decided: Sequence[Condition], moment: Moment) -> dict[str, Any]:
    before = mapping(body.get("status")).get("conditions")
    return {"conditions": merge_in_place(before, decided, [each.type for each in decided], moment)}


def _of_buffer(held: Held) -> dict[str, Any]:
    buffer, template = held.buffer, held.buffer.template
    return {
        "provisioningStrategy": capacity_names.ACTIVE_CAPACITY if buffer.chunk else None,
        "replicas": buffer.count if buffer.chunk else None,
        "podTemplateRef": {"name": template.name} if template else None,
        "podTemplateGeneration": template.generation if template else None,
    }


def _ready(held: Held) -> Condition:
    buffer = held.buffer
    known = buffer.chunk is not None
    return Condition(BufferCondition.READY_FOR_PROVISIONING, "True" if known else "False", buffer.reason, buffer.why)


def _provisioning(held: Held) -> Condition:
    type_, buffer = BufferCondition.PROVISIONING, held.buffer
    if buffer.chunk is None:
        return Condition(type_, "False", CapacityReason.NOT_READY_FOR_PROVISIONING, "")
    if not buffer.count:
        return Condition(type_, "False", CapacityReason.BUFFER_EMPTY, "")
    text = f"{held.placed} of {counted(buffer.count, 'chunk')} have room"
    if held.placed == buffer.count:
        return Condition(type_, "True", CapacityReason.FITS_EXISTING_CAPACITY, text)
    grown = [f"{counted(nodes, 'Node')} of {group}" for group, nodes in sorted(held.added.items())]
    parts = [text, *([f"added are {some_of(grown, _MOST_GROUPS)}"] if grown else [])]
    if held.short:
        why = [f"{group}: {reason}" for group, reason in sorted(held.why.items())]
        none = some_of(why, _MOST_GROUPS, "; ") or "there is no group"
        parts.append(f"{held.short} get none: {none}")
    return Condition(type_, "False", CapacityReason.REQUIRES_NEW_CAPACITY, "; ".join(parts))


def _limited(held: Held) -> Condition:
    limited = held.buffer.limited
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
