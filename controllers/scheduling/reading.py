"""Core objects → shapes. Pods made from one template share one PodKind, so that thousands are read as fast as one."""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from api.reading import spec_of
from controllers.scheduling.demand import ShapeError, demand_of, quantities, resolved_claims, whole
from controllers.scheduling.drainability import KEEPING_ANNOTATIONS, controller_of, keeping_of
from controllers.scheduling.shapes import NodeInfo, Owner, PodInfo, PodKind, Taint, Volume
from controllers.scheduling.volumes import Unresolved, VolumeBook

Obj = Mapping[str, Any]

_ASKED = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "overhead", "resources", "priority")
_FINISHED = ("Succeeded", "Failed")
_STATUSES = ("containerStatuses", "initContainerStatuses")
_SHARED_METADATA = ("labels", "annotations", "ownerReferences")
_SHARED_SPEC = ("containers", "tolerations")
_RARELY_SHARED_SPEC = (
    "initContainers", "nodeSelector", "affinity", "topologySpreadConstraints", "overhead", "resources",
    "schedulingGates",
)  # fmt: skip
_RARE = frozenset(_RARELY_SHARED_SPEC)
"""Most pods have none of these, which is quickly seen."""
_SPARE_KINDS = 10_000
"""So many kinds of pods that are gone may be kept."""
_PLAIN_MARSHAL = 2
"""The last version that writes no back references: equal values give equal bytes."""


_Claims = tuple[Volume | Unresolved, ...]
_Known = tuple[Obj, PodInfo, _Claims]
"""A pod that was read, and what its claims meant then. The pod is held, so that its id names nothing else."""


class _Alike(NamedTuple):
    """What pods are that share ``parts``, which are held as the pods of ``_Known`` are."""

    kind: PodKind
    owner: Owner | None
    parts: tuple[Any, ...]


class Reader:
    """Reads pods; interns what they share. ``book``: claims and volumes, None to leave them out.

    It may be kept from one reconcile to the next; ``look`` begins each: a pod that is the very same object
    as in the last look, with claims that mean the same, is not read again. So a look costs what has changed. A pod
    that shares its parts with one that was read, as pods of one template do in the cache, is known by them.
    """

    def __init__(self, book: VolumeBook | None = None) -> None:
        self._book = book
        self._kinds: dict[object, PodKind] = {}
        self._owners: dict[str, Owner] = {}
        self._alike: dict[tuple[Any, ...], _Alike] = {}
        self._last: dict[int, _Known] = {}
        self._seen: dict[int, _Known] = {}
        self._last_nodes: dict[tuple[int, int], tuple[Obj, Obj | None, NodeInfo]] = {}
        self._seen_nodes: dict[tuple[int, int], tuple[Obj, Obj | None, NodeInfo]] = {}

    def look(self, book: VolumeBook | None = None) -> None:
        """A new look begins. Pods that the last one did not ask for are forgotten, and so are kinds if many are."""
        self._book = book
        self._last, self._seen = self._seen, {}
        self._last_nodes, self._seen_nodes = self._seen_nodes, {}
        if len(self._kinds) > _SPARE_KINDS and len(self._kinds) > 2 * len(
            {id(shape.kind) for _, shape, _ in self._last.values()}
        ):
            self._kinds = {}
            self._owners = {}
            self._alike = {}

    def pod(self, pod: Obj) -> PodInfo:
        """Raises ShapeError naming the field that can't be read."""
        ((_, found),) = self.pods((pod,))
        if isinstance(found, ShapeError):
            raise found
        return found

    def pods(self, pods: Iterable[Obj]) -> Iterator[tuple[Obj, PodInfo | ShapeError]]:
        """Each with what it is, or why it can't be read."""
        last, seen = self._last, self._seen
        for pod in pods:
            known = last.get(id(pod))
            if known is None or (known[2] and known[2] != self._claims(pod)):
                try:
                    known = self._read_pod(pod)
                except ShapeError as error:
                    yield pod, error
                    continue
            seen[id(pod)] = known
            yield pod, known[1]

    def node(self, node: Obj, csi_node: Obj | None = None) -> NodeInfo:
        """As ``read_node``."""
        both = (id(node), id(csi_node))
        known = self._last_nodes.get(both)
        if known is None:
            known = (node, csi_node, read_node(node, csi_node))
        self._seen_nodes[both] = known
        return known[2]

    def _read_pod(self, pod: Obj) -> _Known:
        meta, spec = pod["metadata"], spec_of(pod)
        claims = self._claims(pod)
        alike = self._likeness(pod, claims)
        shape = PodInfo(
            meta.get("namespace", ""),
            meta["name"],
            alike.kind,
            meta.get("uid", ""),
            spec.get("nodeName") or "",
            alike.owner,
            meta.get("creationTimestamp") or "",
            meta.get("deletionTimestamp") or "",
        )
        return pod, shape, claims

    def _likeness(self, pod: Obj, claims: _Claims) -> _Alike:
        """Known by its parts, or read; claims are nothing that pods share."""
        try:
            key = () if claims else _identity(pod)
            known = self._alike.get(key)
        except (AttributeError, TypeError):
            key, known = (), None  # not shaped like a pod: what follows says so
        if known is not None:
            return known
        content = self._content(pod)
        controller = controller_of(pod["metadata"])
        owner = None if controller is None else self._owner(controller)
        alike = _Alike(self._kind(pod, content, claims), owner, _held(pod))
        if key and not content[_RESIZED] and len(self._alike) < _SPARE_KINDS + 2 * len(self._kinds):
            self._alike[key] = alike
        return alike

    def _owner(self, found: Obj) -> Owner:
        kind, name, uid = found.get("kind", ""), found.get("name", ""), found.get("uid", "")
        owner = self._owners.get(uid)
        if owner is None or owner.name != name or owner.kind != kind:
            owner = self._owners[uid] = Owner(kind, name, uid)
        return owner

    def _claims(self, pod: Obj) -> _Claims:
        if self._book is None or not spec_of(pod).get("volumes"):
            return ()
        try:
            return resolved_claims(pod, self._book)
        except (AttributeError, TypeError, KeyError):
            raise ShapeError("spec.volumes", "name claims that can't be read") from None

    def _content(self, pod: Obj) -> list[Any]:
        try:
            return _parts(pod)
        except (AttributeError, TypeError, KeyError):
            raise ShapeError("spec", "is not shaped like the spec of a Pod") from None

    def _kind(self, pod: Obj, parts: list[Any], claims: _Claims) -> PodKind:
        content = marshal.dumps(parts, _PLAIN_MARSHAL)
        key = (content, claims, "nodeName" in pod["spec"]) if claims else content
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = self._read(pod, claims)
        return kind

    def _read(self, pod: Obj, claims: _Claims) -> PodKind:
        meta, spec = pod["metadata"], spec_of(pod)
        priority = spec.get("priority")
        try:
            demand = demand_of(pod, claims)
        except (AttributeError, TypeError, KeyError):
            raise ShapeError("spec", "is not shaped like the spec of a Pod") from None
        return PodKind(
            demand,
            meta.get("namespace", ""),
            dict(meta.get("labels") or {}),
            keeping_of(pod),
            priority if isinstance(priority, int) else 0,
            bool(meta.get("deletionTimestamp")),
        )


_RESIZED = 7
"""Where ``_parts`` tells of a pod that has not what it asks for."""


def _identity(pod: Obj) -> tuple[Any, ...]:
    """By what two pods differ: the identity of the parts that the cache keeps once for all pods with equal ones, and
    what else decides. Pods with equal keys have equal ``_parts``, unless one was resized.
    """
    meta, spec, status = pod["metadata"], spec_of(pod), pod.get("status") or {}
    return (
        meta.get("namespace"),
        spec.get("priority"),
        spec.get("terminationGracePeriodSeconds"),
        not meta.get("deletionTimestamp"),
        not spec.get("nodeName"),
        status.get("phase") in _FINISHED,
        *map(id, map(meta.get, _SHARED_METADATA)),
        *map(id, map(spec.get, _SHARED_SPEC)),
        *map(id, map(status.get, _STATUSES)),
        () if _RARE.isdisjoint(spec) else tuple(map(id, map(spec.get, _RARELY_SHARED_SPEC))),
        *(map(id, _local_volumes(spec)) if spec.get("volumes") else ()),
    )


def _held(pod: Obj) -> tuple[Any, ...]:
    """Whatever ``_identity`` looks at by its identity."""
    meta, spec, status = pod["metadata"], spec_of(pod), pod.get("status") or {}
    of_spec = map(spec.get, (*_SHARED_SPEC, *_RARELY_SHARED_SPEC))
    return (*map(meta.get, _SHARED_METADATA), *of_spec, *map(status.get, _STATUSES), *_local_volumes(spec))


def _local_volumes(spec: Obj) -> list[Obj]:
    return [volume for volume in spec.get("volumes") or () if "emptyDir" in volume or "hostPath" in volume]


def _parts(pod: Obj) -> list[Any]:
    """Everything of a pod that a PodKind is made of, and nothing that differs between pods of one template."""
    meta, spec, status = pod["metadata"], spec_of(pod), pod.get("status") or {}
    annotations = meta.get("annotations")
    bound = bool(spec.get("nodeName"))
    return [
        meta.get("namespace"),
        meta.get("labels"),
        bool(meta.get("deletionTimestamp")),
        [(name, spec[name]) for name in _ASKED if name in spec],
        [(c.get("resources"), c.get("ports")) for c in spec.get("containers") or ()],
        "initContainers" in spec
        and [(c.get("resources"), c.get("ports"), c.get("restartPolicy")) for c in spec["initContainers"] or ()],
        bool(spec.get("schedulingGates")),
        bound and "containerStatuses" in status and _resized(spec, status),
        annotations and [annotations.get(name) for name in KEEPING_ANNOTATIONS],
        [(ref.get("kind"), ref.get("controller")) for ref in meta.get("ownerReferences") or ()],
        status.get("phase") in _FINISHED,
        spec.get("terminationGracePeriodSeconds"),
        "volumes" in spec and [_local(volume) for volume in _local_volumes(spec)],
    ]


def _local(volume: Obj) -> tuple[Any, ...]:
    return volume.get("name"), volume.get("emptyDir"), bool(volume.get("hostPath"))


def _resized(spec: Obj, status: Obj) -> Any:
    """What running containers have, where that is not what they ask."""
    statuses = [each for field in _STATUSES for each in status.get(field) or ()]
    if not any("allocatedResources" in each or each.get("resources") for each in statuses):
        return None
    asked = {
        c.get("name"): (c.get("resources") or {}).get("requests")
        for field in ("containers", "initContainers")
        for c in spec.get(field) or ()
    }
    different = []
    for each in statuses:
        applied, granted = (each.get("resources") or {}).get("requests"), each.get("allocatedResources")
        wanted = asked.get(each.get("name"))
        if applied not in (None, wanted) or granted not in (None, wanted):
            different.append((each.get("name"), applied, granted))
    if not different:
        return None
    resizes = (c for c in status.get("conditions") or () if c.get("type") == "PodResizePending")
    return different, [c.get("reason") for c in resizes]


def read_node(node: Obj, csi_node: Obj | None = None) -> NodeInfo:
    """A Node as kube-scheduler sees it. Raises ShapeError naming the field."""
    meta, spec, status = node["metadata"], spec_of(node), node.get("status") or {}
    limits = {}
    for driver in spec_of(csi_node or {}).get("drivers") or ():
        count = (driver.get("allocatable") or {}).get("count")
        if isinstance(count, int):
            limits[str(driver.get("name"))] = count
    return NodeInfo(
        name=meta["name"],
        labels=meta.get("labels") or {},
        allocatable=whole(quantities(status.get("allocatable"), "status.allocatable")),
        taints=tuple(
            Taint(str(each.get("key", "")), str(each.get("value") or ""), str(each.get("effect", "")))
            for each in spec.get("taints") or ()
        ),
        unschedulable=spec.get("unschedulable") is True,
        volume_limits=tuple(sorted(limits.items())),
    )
