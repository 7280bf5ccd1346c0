"""ProvisioningRequests as they are read: for which pods they want room, what they hold, and how much of it is used.

The autoscaler needs of them only who holds room; the reconciler ``provisioningrequest`` decides about them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from api import provisioning_names
from api.conditions import ProvisioningCondition
from controllers.autoscaler import record as records
from controllers.autoscaler.record import Record
from controllers.kernel.conditions import find, is_true, parse_time
from controllers.kernel.refs import PROVISIONING_REQUEST, Key, Obj, Ref, is_deleting, key_of, ref_of
from controllers.scheduling.demand import ShapeError
from controllers.scheduling.reading import Reader
from controllers.scheduling.shapes import PodInfo

Pods = tuple[tuple[PodInfo, int], ...]
"""Pods that are alike, and how many."""
_CONTAINERS = ("initContainers", "containers")


@dataclass(frozen=True, slots=True)
class Request:
    """``pods`` room is wanted for, ``left`` those that have no Node yet. ``problem``: why they are not known.
    ``ended``: its booking is to end now.
    """

    ref: Ref
    body: Obj
    created: datetime
    pods: Pods = ()
    left: Pods = ()
    problem: str = ""
    record: Record = field(default_factory=Record)
    ended: bool = False

    @property
    def conditions(self) -> Sequence[Mapping[str, Any]]:
        return (self.body.get("status") or {}).get("conditions") or ()

    @property
    def class_name(self) -> str:
        return str((self.body.get("spec") or {}).get("provisioningClassName") or "")

    @property
    def parameters(self) -> Mapping[str, str]:
        return (self.body.get("spec") or {}).get("parameters") or {}

    def says(self, condition: ProvisioningCondition) -> bool:
        return is_true(self.conditions, condition)

    def since(self, condition: ProvisioningCondition) -> datetime | None:
        return parse_time((find(self.conditions, condition) or {}).get("lastTransitionTime"))

    @property
    def over(self) -> bool:
        """Nothing is held for it any more, or ever will be."""
        return any(
            self.says(each)
            for each in (
                ProvisioningCondition.FAILED,
                ProvisioningCondition.BOOKING_EXPIRED,
                ProvisioningCondition.CAPACITY_REVOKED,
            )
        )

    @property
    def booked(self) -> bool:
        return not self.over and self.says(ProvisioningCondition.PROVISIONED)

    @property
    def growing(self) -> bool:
        """Nodes are on their way for it."""
        return not self.over and not self.booked and self.record.since is not None

    @property
    def holds(self) -> bool:
        return (self.booked and not self.ended) or self.growing

    @property
    def rank(self) -> tuple[bool, datetime, datetime, Key]:
        """Order of requests: first those with a booking, then those whose Nodes are on their way, then the others."""
        if self.booked:
            held = self.since(ProvisioningCondition.PROVISIONED)
        else:
            held = self.record.since if self.growing else None
        return not self.booked, held or self.created, self.created, self.ref.key


def consumed_by(pod: Obj) -> Key | None:
    """The request whose room the pod takes."""
    annotations = pod["metadata"].get("annotations")
    if not annotations:
        return None
    name = annotations.get(provisioning_names.CONSUME_REQUEST_ANNOTATION) or annotations.get(
        provisioning_names.CA_CONSUME_REQUEST_ANNOTATION
    )
    return Key(pod["metadata"].get("namespace", ""), str(name)) if name else None


def read_requests(
    requests: Iterable[Obj], templates: Iterable[Obj], *, pods: Iterable[Obj], reader: Reader
) -> tuple[Request, ...]:
    """In the order in which they are served."""
    by_key = {key_of(template): template for template in templates}
    alive = [body for body in requests if not is_deleting(body)]
    consumers = _consumers(pods, reader) if alive else {}
    found = [_read(body, by_key, consumers.get(key_of(body), ()), reader) for body in alive]
    return tuple(sorted(found, key=lambda request: request.rank))


def _consumers(pods: Iterable[Obj], reader: Reader) -> dict[Key, list[PodInfo]]:
    """Pods that have a Node, by the request that they consume."""
    found: dict[Key, list[PodInfo]] = {}
    for body in pods:
        key = consumed_by(body)
        if key is not None and (body.get("spec") or {}).get("nodeName"):
            try:
                found.setdefault(key, []).append(reader.pod(body))
            except ShapeError:
                continue
    return found


def _read(body: Obj, templates: Mapping[Key, Obj], consumers: Sequence[PodInfo], reader: Reader) -> Request:
    created = parse_time(body["metadata"].get("creationTimestamp"))
    ref = ref_of(PROVISIONING_REQUEST, body)
    kept = records.read((body.get("status") or {}).get("provisioningClassDetails"))
    moment = created or datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    try:
        pods = tuple(_pods_of(body, templates, reader=reader))
    except ShapeError as error:
        return Request(ref=ref, body=body, created=moment, problem=str(error), record=kept)
    return Request(ref=ref, body=body, created=moment, pods=pods, left=_left(pods, consumers), problem="", record=kept)


def _pods_of(body: Obj, templates: Mapping[Key, Obj], *, reader: Reader) -> Iterable[tuple[PodInfo, int]]:
    """Raises ShapeError naming the field, or the PodTemplate that is missing or can't be read."""
    namespace, name = key_of(body).namespace, key_of(body).name
    for index, pod_set in enumerate((body.get("spec") or {}).get("podSets") or ()):
        path = f"spec.podSets[{index}]"
        wanted = str((pod_set.get("podTemplateRef") or {}).get("name") or "")
        template = templates.get(Key(namespace, wanted))
        if template is None:
            raise ShapeError(f"{path}.podTemplateRef.name", f"there is no PodTemplate {namespace}/{wanted}")
        try:
            shape = reader.pod(pod_of_template(template, namespace, f"{name}-{index}"))
        except ShapeError as error:
            raise ShapeError(f"{path}.podTemplateRef.name", f"PodTemplate {namespace}/{wanted}: {error}") from None
        if not (template.get("template") or {}).get("spec", {}).get("containers"):
            raise ShapeError(f"{path}.podTemplateRef.name", f"PodTemplate {namespace}/{wanted} has no containers")
        yield shape, int(pod_set.get("count") or 0)


def pod_of_template(template: Obj, namespace: str, name: str) -> dict[str, Any]:
    """A pod of the template, with what an API server would fill in that matters: limits stand for missing requests."""
    inner = template.get("template") or {}
    spec = dict(inner.get("spec") or {})
    spec.pop("nodeName", None)
    for part in _CONTAINERS:
        if isinstance(spec.get(part), list):
            spec[part] = [_with_requests(each) for each in spec[part]]
    return {"metadata": {**(inner.get("metadata") or {}), "namespace": namespace, "name": name}, "spec": spec}


def _with_requests(container: Any) -> Any:
    resources = (container.get("resources") or {}) if isinstance(container, Mapping) else {}
    if not isinstance(resources, Mapping) or not resources.get("limits"):
        return container
    both = {**resources["limits"], **(resources.get("requests") or {})}
    return {**container, "resources": {**resources, "requests": both}}


def _left(pods: Pods, consumers: Iterable[PodInfo]) -> Pods:
    """What no pod has taken yet. A pod that is like none of the sets is taken off the first one that has any left."""
    left = [number for _, number in pods]
    for consumer in consumers:
        alike = (i for i, (shape, _) in enumerate(pods) if left[i] and shape.kind.demand == consumer.kind.demand)
        index = next(alike, next((i for i, number in enumerate(left) if number), None))
        if index is not None:
            left[index] -= 1
    return tuple((shape, number) for (shape, _), number in zip(pods, left, strict=True) if number)
