"""What the LimitRanges of a namespace give to containers that name no request or no limit themselves.

    default: {cpu: 500m}, defaultRequest: {cpu: 100m}; a container without either requests 100m and is limited to 500m;
    one with a limit of its own requests that much

As the admission plugin LimitRanger has it, whose API server fills in ``default`` and ``defaultRequest`` of each item.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from controllers.kernel.refs import Obj, key_of, mapping, spec_of

_CONTAINER = "Container"
_LISTS = ("containers", "initContainers")


@dataclass(frozen=True, slots=True)
class ContainerDefaults:
    """Resource → quantity, as it is written."""

    limits: Mapping[str, Any]
    requests: Mapping[str, Any]

    def applied(self, pod: Obj) -> Obj:
        """The pod as it would be once it was admitted."""
        spec = spec_of(pod)
        lists = {name: [self._of(each) for each in found] for name in _LISTS if (found := _listed(spec.get(name)))}
        return {**pod, "spec": {**spec, **lists}}

    def _of(self, container: Any) -> Any:
        if not isinstance(container, Mapping):
            return container
        resources = mapping(container.get("resources"))
        limits, requests = mapping(resources.get("limits")), mapping(resources.get("requests"))
        found = {**resources, "limits": {**self.limits, **limits}, "requests": {**self.requests, **limits, **requests}}
        return {**container, "resources": found}


def container_defaults(bodies: Iterable[Obj]) -> dict[str, ContainerDefaults]:
    """By namespace. Where several LimitRanges name a resource, the first one by name counts."""
    found: dict[str, ContainerDefaults] = {}
    for body in sorted(bodies, key=key_of):
        namespace = key_of(body).namespace
        for item in _listed(spec_of(body).get("limits")):
            if mapping(item).get("type") == _CONTAINER:
                before = found.get(namespace, ContainerDefaults({}, {}))
                limits = {**mapping(item.get("default")), **before.limits}
                requests = {**mapping(item.get("defaultRequest")), **before.requests}
                found[namespace] = ContainerDefaults(limits, requests)
    return found


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
