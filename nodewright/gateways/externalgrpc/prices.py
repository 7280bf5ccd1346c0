"""What a pod of the wire asks for, to be priced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controllers.scheduling.demand import effective_requests
from controllers.scheduling.shapes import Amounts
from nodewright.gateways.externalgrpc.wire import core_pb2 as core


def requests_of(pod: core.Pod) -> Amounts:
    """What a scheduler counts. Raises ShapeError, a ValueError, naming the quantity that is none."""
    spec = {
        "containers": list(map(_container, pod.spec.containers)),
        "initContainers": list(map(_container, pod.spec.initContainers)),
        "resources": _resources(pod.spec.resources),
        "overhead": _quantities(pod.spec.overhead),
    }
    return effective_requests(spec, {}, bound=False)


def _container(found: core.Container) -> dict[str, Any]:
    return {"resources": _resources(found.resources), "restartPolicy": found.restartPolicy}


def _resources(found: core.ResourceRequirements) -> dict[str, Any]:
    return {"requests": _quantities(found.requests)}


def _quantities(found: Mapping[str, core.Quantity]) -> dict[str, str]:
    return {name: amount.string for name, amount in found.items()}
