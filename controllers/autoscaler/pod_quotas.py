"""For how many more pods like one ResourceQuotas leave room, counted as by the quota admission of Kubernetes.

| of a quota | |
|---|---|
| `requests.cpu`, `cpu`, and so on | what the pod requests |
| `limits.cpu`, `limits.memory` | its limits, those of LimitRanges included; a pod without one is not bounded |
| `pods`, `count/pods` | one |
| scopes, `scopeSelector` | the quota counts pods that all of them mean; a scope that nobody knows means none |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from controllers.kernel.refs import Obj, key_of, mapping, spec_of
from controllers.scheduling.demand import Quantities, ShapeError, at_most, effective_requests, quantities
from controllers.scheduling.shapes import CPU, MEMORY, PODS, Amounts

_LIMITS, _REQUESTS = "limits.", "requests."
_PRIORITY = "PriorityClass"
Use = Mapping[str, int]
"""Of one pod: what quotas call it → amount, limits as ``limits.cpu``."""


@dataclass(frozen=True, slots=True)
class QuotaLeft:
    """What a ResourceQuota leaves of each resource, lowered as buffers take their part. ``spec``: its scopes."""

    quota: str
    amounts: dict[str, int]
    spec: Mapping[str, Any]

    def counts(self, pod: Obj) -> bool:
        """Whether the quota counts such a pod."""
        return all(_is_meant(pod, each) for each in _scopes(self.spec))

    def headroom(self, use: Use) -> list[tuple[int, str]]:
        """Pods for which there is room, by resource."""
        return [(max(0, self.amounts[name]) // amount, name) for name, amount in use.items() if name in self.amounts]

    def take(self, use: Use, pods: int) -> None:
        for name, amount in use.items():
            if name in self.amounts:
                self.amounts[name] -= pods * amount


def quotas_left(bodies: Iterable[Obj]) -> dict[str, list[QuotaLeft]]:
    """By namespace. Those that can't be read are left out: the API server lets nobody write one."""
    found: dict[str, list[QuotaLeft]] = {}
    for body in bodies:
        spec, status = spec_of(body), mapping(body.get("status"))
        try:
            hard = quantities(status.get("hard") or spec.get("hard"), "hard")
            used = quantities(status.get("used"), "used")
        except ShapeError:
            continue
        left = {name: amount - used.get(name, Decimal(0)) for name, amount in hard.items()}
        found.setdefault(key_of(body).namespace, []).append(QuotaLeft(key_of(body).name, _by_resource(left), spec))
    return found


def use_of(pod: Obj, requests: Amounts) -> dict[str, int]:
    """Amounts that one pod takes of a ResourceQuota. ``requests``: the pod's, counted as kube-scheduler counts them."""
    amounts = {name: amount for name, amount in requests if amount}
    limits = {f"{_LIMITS}{name}": amount for name, amount in _limits(spec_of(pod)) if amount and name in (CPU, MEMORY)}
    return {**amounts, **limits, PODS: 1}


def _limits(spec: Mapping[str, Any]) -> Amounts:
    """The same sums as of requests. Raises ShapeError."""

    def limited(of: Mapping[str, Any]) -> dict[str, Any]:
        limits = mapping(mapping(of.get("resources")).get("limits"))
        return {**of, "resources": {"requests": limits}}

    lists = {name: [limited(each) for each in spec.get(name) or ()] for name in ("containers", "initContainers")}
    return effective_requests({**limited(spec), **lists, "overhead": None}, {}, bound=False)


def _by_resource(left: Quantities) -> dict[str, int]:
    """``cpu`` and ``requests.cpu`` mean the same; where both are there, the smaller one counts."""
    requests: Quantities = {}
    limits: Quantities = {}
    for name, amount in left.items():
        if name.startswith(_LIMITS):
            limits[name.removeprefix(_LIMITS)] = amount
            continue
        resource = PODS if name == "count/pods" else name.removeprefix(_REQUESTS)
        requests[resource] = min(amount, requests.get(resource, amount))
    return {**at_most(requests), **{f"{_LIMITS}{name}": amount for name, amount in at_most(limits).items()}}


@dataclass(frozen=True, slots=True)
class _Scope:
    name: str
    operator: str = "Exists"
    values: Sequence[str] = ()


def _scopes(spec: Mapping[str, Any]) -> list[_Scope]:
    found = [_Scope(str(name)) for name in spec.get("scopes") or ()]
    for each in mapping(spec.get("scopeSelector")).get("matchExpressions") or ():
        values = tuple(map(str, each.get("values") or ()))
        found.append(_Scope(str(each.get("scopeName")), str(each.get("operator")), values))
    return found


def _is_meant(pod: Obj, scope: _Scope) -> bool:
    spec = spec_of(pod)
    if scope.name == _PRIORITY:
        return _has_priority(str(spec.get("priorityClassName") or ""), scope)
    ends, best_effort = spec.get("activeDeadlineSeconds") is not None, _is_best_effort(spec)
    known = {
        "Terminating": ends,
        "NotTerminating": not ends,
        "BestEffort": best_effort,
        "NotBestEffort": not best_effort,
        "CrossNamespacePodAffinity": _looks_at_others(spec),
    }
    return known.get(scope.name, False)


def _has_priority(name: str, scope: _Scope) -> bool:
    if scope.operator in ("In", "NotIn"):
        return (name in scope.values) == (scope.operator == "In")
    return bool(name) == (scope.operator == "Exists")


def _is_best_effort(spec: Mapping[str, Any]) -> bool:
    """No container asks for cpu or memory, or is limited in it."""
    all_of = [spec, *(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    resources = [mapping(each.get("resources")) for each in all_of]
    asked = {name for each in resources for part in ("requests", "limits") for name in mapping(each.get(part))}
    return asked.isdisjoint((CPU, MEMORY))


def _looks_at_others(spec: Mapping[str, Any]) -> bool:
    """Whether its affinity to pods, or its aversion, names other namespaces."""
    affinity = mapping(spec.get("affinity"))
    terms: list[Mapping[str, Any]] = []
    for kind in ("podAffinity", "podAntiAffinity"):
        found = mapping(affinity.get(kind))
        terms += found.get("requiredDuringSchedulingIgnoredDuringExecution") or []
        preferred = found.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [mapping(each.get("podAffinityTerm")) for each in preferred]
    return any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms)
