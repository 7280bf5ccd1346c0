"""What a pod asks for in all: containers, init containers, sidecars, pod-level resources and overhead.

The rules of KEP-753 (sidecars), KEP-2837 (pod-level resources) and KEP-1287 (a resize in progress counts as the
larger of what was asked, granted and applied).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from controllers.scheduling.amounts import Quantities, add, largest, quantities, whole
from controllers.scheduling.shapes import CPU, MEMORY, Amounts

_POD_LEVEL_PREFIX = "hugepages-"


def effective_requests(spec: Mapping[str, Any], status: Mapping[str, Any], *, bound: bool) -> Amounts:
    """Raises ShapeError naming the field. ``bound``: the pod has a Node, so a resize in progress counts."""
    running = _Running(status) if bound else None
    summed: Quantities = {}
    for field, container in _containers(spec, "containers"):
        add(summed, _asked(container, field, running))
    sidecars: Quantities = {}
    starting: Quantities = {}
    for field, container in _containers(spec, "initContainers"):
        is_sidecar = container.get("restartPolicy") == "Always"
        asked = _asked(container, field, running if is_sidecar else None)
        if is_sidecar:
            add(summed, asked)
            add(sidecars, asked)
            peak = sidecars
        else:
            peak = dict(asked)
            add(peak, sidecars)
        starting = largest(starting, peak)
    needed = largest(summed, starting)
    pod_level = quantities((spec.get("resources") or {}).get("requests"), "spec.resources.requests")
    needed.update({name: amount for name, amount in pod_level.items() if _is_pod_level(name)})
    add(needed, quantities(spec.get("overhead"), "spec.overhead"))
    return whole(needed)


class _Running:
    """What the kubelet says it has given to each container."""

    def __init__(self, status: Mapping[str, Any]) -> None:
        found = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
        self._by_name = {each.get("name"): each for each in found if each.get("resources")}
        conditions = status.get("conditions") or ()
        self._infeasible = any(
            each.get("type") == "PodResizePending" and each.get("reason") == "Infeasible" for each in conditions
        )

    def effective(self, name: str, asked: Quantities) -> Quantities:
        found = self._by_name.get(name)
        if found is None:
            return asked
        applied = quantities(found["resources"].get("requests"), f"status.containerStatuses[{name}].resources.requests")
        granted = quantities(found.get("allocatedResources"), f"status.containerStatuses[{name}].allocatedResources")
        return largest(applied, granted) if self._infeasible else largest(asked, applied, granted)


def _asked(container: Mapping[str, Any], field: str, running: _Running | None) -> Quantities:
    asked = quantities((container.get("resources") or {}).get("requests"), f"{field}.resources.requests")
    return running.effective(str(container.get("name")), asked) if running else asked


def _containers(spec: Mapping[str, Any], field: str) -> Sequence[tuple[str, Mapping[str, Any]]]:
    return [(f"spec.{field}[{index}]", each) for index, each in enumerate(spec.get(field) or ())]


def _is_pod_level(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith(_POD_LEVEL_PREFIX)
