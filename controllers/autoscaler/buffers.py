"""CapacityBuffers as they are read: the shape of a chunk, and for how many chunks room is wanted.

The rules are the Cluster Autoscaler's (proposal buffers.md) and Karpenter's. One chunk is the room of one pod. Of
``replicas`` and ``percentage`` the larger number counts, ``limits`` and the ResourceQuotas of the namespace lower it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from api import capacity_names
from api.capacity_conditions import CapacityReason
from controllers.autoscaler.limit_ranges import container_defaults
from controllers.autoscaler.pod_quotas import QuotaLeft, quotas_left, use_of
from controllers.autoscaler.requests import pod_of_template
from controllers.kernel.conditions import counted, parse_time
from controllers.kernel.refs import (
    CAPACITY_BUFFER,
    DEPLOYMENT,
    POD_TEMPLATE,
    REPLICA_SET,
    STATEFUL_SET,
    Key,
    Kind,
    Obj,
    Ref,
    generation_of,
    is_deleting,
    key_of,
    mapping,
    ref_of,
    spec_of,
)
from controllers.scheduling.demand import ShapeError, at_most, quantities
from controllers.scheduling.reading import Reader
from controllers.scheduling.shapes import PODS, PodInfo

WORKLOADS = (DEPLOYMENT, STATEFUL_SET, REPLICA_SET)
"""What ``spec.scalableRef`` may name; all three say in ``spec.template`` what their pods are like."""
_ACTIVE = (capacity_names.ACTIVE_CAPACITY, "active-capacity")
"""The strategy as v1beta1 and as v1 of the kind name it."""
_DAWN = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """The PodTemplate that was read, and its generation."""

    name: str
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """``chunk``: a pod that stands for each of ``count`` chunks; None: ``why`` says what is wrong.

    ``limited``: which ResourceQuota leaves room for fewer chunks; "" if none does.
    """

    ref: Ref
    body: Obj
    chunk: PodInfo | None = None
    count: int = 0
    reason: CapacityReason = CapacityReason.RESOLVED
    why: str = ""
    limited: str = ""
    template: Template | None = None
    pod: Obj = field(default_factory=dict)
    """A body of a pod like the chunks."""
    use: Mapping[str, int] = field(default_factory=dict)
    """Amounts that one chunk takes of the namespace's ResourceQuotas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferObjects:
    """``workloads`` and ``pod_templates`` are what buffers may refer to, ``resource_quotas`` what bounds them,
    ``limit_ranges`` what their containers get that say nothing themselves."""

    buffers: Sequence[Obj] = ()
    pod_templates: Sequence[Obj] = ()
    workloads: Mapping[Kind, Sequence[Obj]] = field(default_factory=dict)
    resource_quotas: Sequence[Obj] = ()
    limit_ranges: Sequence[Obj] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """``pod``: a body of a pod like the chunks. ``replicas``: of the workload, None for a PodTemplate."""

    pod: Obj
    replicas: int | None = None
    template: Template | None = None


class _Problem(Exception):
    def __init__(self, reason: CapacityReason, why: str) -> None:
        super().__init__(why)
        self.reason = reason


def read_buffers(objects: BufferObjects, reader: Reader) -> tuple[Buffer, ...]:
    """In the order in which they get room: oldest first. Buffers of a namespace share what its ResourceQuotas leave."""
    alive = sorted((body for body in objects.buffers if not is_deleting(body)), key=_rank)
    if not alive:
        return ()
    found = _Referred(objects)
    quotas = quotas_left(objects.resource_quotas)
    return tuple(_within_quotas(_read(body, found, reader), quotas) for body in alive)


def _rank(body: Obj) -> tuple[datetime, Key]:
    return parse_time(body["metadata"].get("creationTimestamp")) or _DAWN, key_of(body)


def _read(body: Obj, referred: _Referred, reader: Reader) -> Buffer:
    ref = ref_of(CAPACITY_BUFFER, body)
    try:
        shape = referred.shape(body)
        chunk = _chunk(shape.pod, reader)
        wanted = _wanted(spec_of(body), replicas=shape.replicas)
        count = _within_limits(spec_of(body), wanted, chunk=chunk)
        use = use_of(shape.pod, chunk.kind.demand.requests)
    except _Problem as problem:
        return Buffer(ref=ref, body=body, reason=problem.reason, why=str(problem))
    except ShapeError as error:
        return Buffer(ref=ref, body=body, reason=CapacityReason.RESOLUTION_FAILED, why=str(error))
    most = capacity_names.MAX_CHUNKS
    why = f"{count} chunks are asked for, and a buffer has at most {most}" if count > most else ""
    found = Buffer(ref=ref, body=body, chunk=chunk, count=min(count, most), why=why, template=shape.template)
    return replace(found, pod=shape.pod, use=use)


def _chunk(pod: Obj, reader: Reader) -> PodInfo:
    if not spec_of(pod).get("containers"):
        raise ShapeError("spec.containers", "the pod has none")
    return reader.pod(pod)


class _Referred:
    """What buffers name, by key."""

    def __init__(self, objects: BufferObjects) -> None:
        self._templates = {key_of(each): each for each in objects.pod_templates}
        self._workloads = {
            (kind.name, key_of(each)): each for kind, bodies in objects.workloads.items() for each in bodies
        }
        self._defaults = container_defaults(objects.limit_ranges)

    def shape(self, body: Obj) -> _Shape:
        """Raises _Problem naming the field or what is missing."""
        spec = spec_of(body)
        strategy = spec.get("provisioningStrategy") or capacity_names.ACTIVE_CAPACITY
        if strategy not in _ACTIVE:
            served = f"only {capacity_names.ACTIVE_CAPACITY} is served"
            raise _Problem(CapacityReason.RESOLUTION_FAILED, f"spec.provisioningStrategy: {strategy!r}; {served}")
        template, workload = mapping(spec.get("podTemplateRef")), mapping(spec.get("scalableRef"))
        if bool(template) == bool(workload):
            why = "spec: exactly one of podTemplateRef and scalableRef is needed"
            raise _Problem(CapacityReason.RESOLUTION_FAILED, why)
        key = Key(key_of(body).namespace, str((template or workload).get("name") or ""))
        shape = self._of_template(key, body) if template else self._of_workload(workload, key, body)
        defaults = self._defaults.get(key.namespace)
        return shape if defaults is None else replace(shape, pod=defaults.applied(shape.pod))

    def _of_template(self, key: Key, body: Obj) -> _Shape:
        found = self._templates.get(key)
        if found is None:
            why = f"spec.podTemplateRef.name: there is no {POD_TEMPLATE} {key}"
            raise _Problem(CapacityReason.POD_TEMPLATE_NOT_FOUND, why)
        pod = pod_of_template(found, key.namespace, _name_of_chunk(body))
        return _Shape(pod=pod, template=Template(name=key.name, generation=generation_of(found)))

    def _of_workload(self, ref: Mapping[str, Any], key: Key, body: Obj) -> _Shape:
        kind = next((each for each in WORKLOADS if each.name == ref.get("kind")), None)
        if kind is None or (ref.get("apiGroup") or kind.group) != kind.group:
            served = ", ".join(each.name for each in WORKLOADS)
            named = f"{ref.get('kind')!r} of {ref.get('apiGroup') or 'apps'!r}"
            why = f"spec.scalableRef.kind: {named} is not served, {served} are"
            raise _Problem(CapacityReason.RESOLUTION_FAILED, why)
        found = self._workloads.get((kind.name, key))
        if found is None:
            why = f"spec.scalableRef.name: there is no {kind} {key}"
            raise _Problem(CapacityReason.SCALABLE_REF_NOT_FOUND, why)
        pod = pod_of_template({"template": spec_of(found).get("template")}, key.namespace, _name_of_chunk(body))
        replicas = spec_of(found).get("replicas")
        return _Shape(pod=pod, replicas=replicas if isinstance(replicas, int) else 1)


def _name_of_chunk(body: Obj) -> str:
    return f"capacity-buffer-{key_of(body).name}"


def _wanted(spec: Obj, *, replicas: int | None) -> int | None:
    """Chunks by ``replicas`` and ``percentage``; None if neither is there.

    Worked example: 20 percent of 12 replicas are ceil(2.4) = 3 chunks; with ``replicas: 5`` beside it 5.
    """
    found = []
    if isinstance(spec.get("replicas"), int):
        found.append(int(spec["replicas"]))
    if isinstance(spec.get("percentage"), int):
        if replicas is None:
            why = "spec.percentage: is a share of the replicas of spec.scalableRef, which is not given"
            raise _Problem(CapacityReason.RESOLUTION_FAILED, why)
        found.append(-(-replicas * int(spec["percentage"]) // 100))
    return max(0, *found) if found else None


def _within_limits(spec: Obj, wanted: int | None, *, chunk: PodInfo) -> int:
    """As many chunks as fit into ``spec.limits``, and no more than are wanted. Raises ShapeError or _Problem."""
    limits = mapping(spec.get("limits"))
    if len(limits) > capacity_names.MAX_QUOTA_RESOURCES:
        raise ShapeError("spec.limits", f"has more than {capacity_names.MAX_QUOTA_RESOURCES} resources")
    fits = [count for _, count in _counts(at_most(quantities(limits, "spec.limits")), chunk)]
    if wanted is None and not fits:
        why = "spec: none of replicas, percentage and limits (of something that a chunk requests) says how many chunks"
        raise _Problem(CapacityReason.RESOLUTION_FAILED, why)
    return min([*fits, *([] if wanted is None else [wanted])])


def _counts(left: Mapping[str, int], chunk: PodInfo) -> list[tuple[str, int]]:
    """Resource → chunks that fit into ``left`` of it, for what a chunk requests.

    Worked example: of 10 cores fit 10000 // 1500 = 6 chunks that request 1500 thousandths of a core each.
    """
    requests = (*chunk.kind.demand.requests, (PODS, 1))
    return [(name, max(0, left[name]) // amount) for name, amount in requests if name in left]


def _within_quotas(buffer: Buffer, quotas: Mapping[str, Sequence[QuotaLeft]]) -> Buffer:
    """Fewer chunks where ResourceQuotas leave room for fewer pods; what they take is taken off for the next buffer."""
    if buffer.chunk is None:
        return buffer
    mine = [each for each in quotas.get(buffer.ref.key.namespace, ()) if each.counts(buffer.pod)]
    fits = [
        (count, f"ResourceQuota {left.quota} leaves {resource} for {counted(count, 'chunk')}")
        for left in mine
        for count, resource in left.headroom(buffer.use)
    ]
    least, why = min(fits, default=(buffer.count, ""))
    count = min(buffer.count, least)
    for left in mine:
        left.take(buffer.use, count)
    return replace(buffer, count=count, limited=why) if count < buffer.count else buffer
