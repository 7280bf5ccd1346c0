"""What a viewer asks of the autoscaler: pods that are not there, and other largest sizes of groups. Nothing is written.

The pods are put into the copy of the cluster that the decision is made on, so that all the rest is as for real ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from controllers.autoscaler.observe import Observed

MOST_PODS, MOST_SIZES, MOST_LINES = 1000, 50, 20
LARGEST_SIZE = 100_000
LONGEST = 512
"""Characters of each text."""
PREFIX = "what-if-"
"""Names of such pods begin with it. A real one of that name is replaced in the copy."""
GPU = "nvidia.com/gpu"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class WhatIfError(ValueError):
    """Begins with the field of the question that is wrong."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """``pods``: as an API server would show them. ``sizes``: id of a group → its largest size."""

    pods: tuple[Mapping[str, Any], ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)


def read(body: Mapping[str, Any]) -> WhatIf:
    """``count``, ``cpu``, ``memory``, ``gpu``, ``gpuResource``, ``namespace``, ``nodeSelector`` and ``tolerations`` (a
    line each), ``sizes``. Raises WhatIfError.
    """
    count = _number(body, "count", MOST_PODS)
    pods = tuple(_pod(body, number) for number in range(count))
    if pods:
        _check(pods[0])
    return WhatIf(pods, _sizes(body.get("sizes") or {}))


def with_sizes(observed: Observed, sizes: Mapping[str, int]) -> Observed:
    """Raises WhatIfError for a group that is not there, and for a largest size below the least."""
    left = dict(sizes)
    states = []
    for state in observed.cluster.groups:
        most = left.pop(state.id, None)
        if most is not None:
            least = state.group.bounds.min_size
            if most < least:
                raise WhatIfError(f"sizes: {state.id} has {least} Machines at least, and {most} is less")
            group = replace(state.group, bounds=replace(state.group.bounds, max_size=most))
            state = replace(state, group=group)  # noqa: PLW2901
        states.append(state)
    if left:
        raise WhatIfError(f"sizes: there is no group {next(iter(left))[:LONGEST]}")
    return replace(observed, cluster=replace(observed.cluster, groups=tuple(states)))


def is_asked(namespace: str, name: str, what_if: WhatIf | None) -> bool:
    """Whether the pod is one of those that are not there."""
    if what_if is None or not what_if.pods or not name.startswith(PREFIX):
        return False
    return bool(namespace == what_if.pods[0]["metadata"]["namespace"])


def _pod(body: Mapping[str, Any], number: int) -> dict[str, Any]:
    name, namespace = f"{PREFIX}{number}", _text(body, "namespace") or "default"
    asked = {resource: text for resource in ("cpu", "memory") if (text := _text(body, resource))}
    if gpus := _number(body, "gpu", MOST_PODS):
        asked[_text(body, "gpuResource") or GPU] = str(gpus)
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    resources = {"requests": asked, "limits": {name: each for name, each in asked.items() if "/" in name}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": name, "labels": {"nodewright": "what-if"}},
        "spec": {
            "containers": [{"name": "what-if", "resources": resources}],
            "nodeSelector": dict(_selected(_lines(body, "nodeSelector"))),
            "tolerations": [_toleration(line) for line in _lines(body, "tolerations")],
        },
        "status": {"phase": "Pending", "conditions": [waits]},
    }


def _check(pod: Mapping[str, Any]) -> None:
    from controllers.scheduling.demand import ShapeError  # noqa: PLC0415
    from controllers.scheduling.reading import Reader  # noqa: PLC0415

    try:
        Reader().pod(pod)
    except ShapeError as error:
        raise WhatIfError(str(error)[:LONGEST]) from None


def _selected(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        key, equals, value = line.partition("=")
        if not key.strip() or not equals:
            raise WhatIfError(f"nodeSelector: {line[:80]!r} is not KEY=VALUE")
        yield key.strip(), value.strip()


def _toleration(line: str) -> dict[str, str]:
    """``KEY``, ``KEY=VALUE``, either with ``:EFFECT`` behind it; ``*`` tolerates every taint."""
    if line == "*":
        return {"operator": "Exists"}
    taint, colon, effect = line.partition(":")
    key, equals, value = taint.partition("=")
    if not key.strip() or (colon and effect.strip() not in _EFFECTS):
        raise WhatIfError(f"tolerations: {line[:80]!r} is not KEY[=VALUE][:EFFECT]; effects: {', '.join(_EFFECTS)}")
    found = {"key": key.strip(), "operator": "Equal" if equals else "Exists"}
    return {**found, **({"value": value.strip()} if equals else {}), **({"effect": effect.strip()} if colon else {})}


def _sizes(found: object) -> dict[str, int]:
    if not isinstance(found, dict) or len(found) > MOST_SIZES:
        raise WhatIfError(f"sizes: an object of at most {MOST_SIZES} groups is expected")
    return {str(group): _number(found, group, LARGEST_SIZE, f"sizes.{str(group)[:80]}") for group in found}


def _lines(body: Mapping[str, Any], name: str) -> list[str]:
    lines = [line.strip() for line in _text(body, name, MOST_LINES * LONGEST).splitlines() if line.strip()]
    if len(lines) > MOST_LINES or any(len(line) > LONGEST for line in lines):
        raise WhatIfError(f"{name}: at most {MOST_LINES} lines of {LONGEST} characters are taken")
    return lines


def _text(body: Mapping[str, Any], name: str, longest: int = LONGEST) -> str:
    found = body.get(name, "")
    if not isinstance(found, str) or len(found) > longest:
        raise WhatIfError(f"{name}: a text of at most {longest} characters is expected")
    return found.strip()


def _number(body: Mapping[str, Any], name: str, most: int, title: str = "") -> int:
    found = body.get(name, 0)
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= most:
        raise WhatIfError(f"{title or name}: a whole number from 0 to {most} is expected")
    return found
