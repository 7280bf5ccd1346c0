"""What a pod asks of a Node: amounts of resources in all, and the rest of its spec.

Resource lists as whole numbers, rounded as kube-scheduler rounds: up, and once per sum.

What a pod asks for in all: containers, init containers, sidecars, pod-level resources and overhead.

The rules of KEP-753 (sidecars), KEP-2837 (pod-level resources) and KEP-1287 (a resize in progress counts as the
larger of what was asked, granted and applied).

What a core Pod asks of a Node, read from its spec.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from api.quantity import parse_quantity
from api.reading import spec_of
from api.remembered import remembered
from api.selectors import NOTHING, Operator, Requirement, Selector, SelectorError, from_label_selector
from controllers.scheduling.shapes import (
    ANY_IP,
    CPU,
    MEMORY,
    Amounts,
    Demand,
    HostPort,
    PodTerm,
    Spread,
    Toleration,
    Volume,
    node_terms,
)
from controllers.scheduling.volumes import Unresolved, VolumeBook

Quantities = dict[str, Decimal]

_EXACT = Context(prec=100)
_LARGEST = (1 << 63) - 1
_MILLI = Decimal(1000)


class ShapeError(ValueError):
    """A Node or pod that can't be read. ``field`` is the path inside the object."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


def quantities(found: Any, field: str) -> Quantities:
    """A ResourceList as exact decimals. Raises ShapeError naming the entry."""
    if not found:
        return {}
    if not isinstance(found, Mapping):
        raise ShapeError(field, "must be a map of resources to quantities")
    exact = {}
    for name, text in found.items():
        try:
            exact[str(name)] = _parsed(text if isinstance(text, int) else str(text))
        except (ValueError, ArithmeticError) as error:
            raise ShapeError(f"{field}[{name}]", str(error)) from None
    return exact


def add(total: Quantities, more: Mapping[str, Decimal]) -> None:
    for name, amount in more.items():
        total[name] = _EXACT.add(total[name], amount) if name in total else amount


def largest(*lists: Mapping[str, Decimal]) -> Quantities:
    """Per resource the largest amount."""
    best: Quantities = {}
    for each in lists:
        for name, amount in each.items():
            if name not in best or amount > best[name]:
                best[name] = amount
    return best


def whole(exact: Mapping[str, Decimal]) -> Amounts:
    """As kube-scheduler counts: cpu in thousandths, the rest in units, rounded up; zeros are left out."""
    rounded = ((name, _whole(name, amount)) for name, amount in exact.items())
    return tuple(sorted((name, amount) for name, amount in rounded if amount > 0))


def at_most(exact: Mapping[str, Decimal]) -> dict[str, int]:
    """Limits in the units of ``whole``, rounded down; zeros and what is below zero are kept."""
    return {
        name: int(_scaled(name, amount).to_integral_value(rounding=ROUND_FLOOR, context=_EXACT))
        for name, amount in exact.items()
    }


def total(lists: Iterable[tuple[Amounts, int]]) -> Amounts:
    """The sum of amounts, each taken so many times."""
    summed: dict[str, int] = {}
    for amounts, times in lists:
        for name, amount in amounts:
            summed[name] = summed.get(name, 0) + amount * times
    return tuple(sorted(summed.items()))


def _whole(name: str, amount: Decimal) -> int:
    rounded = _scaled(name, amount).to_integral_value(rounding=ROUND_CEILING, context=_EXACT)
    return min(int(rounded), _LARGEST)


def _scaled(name: str, amount: Decimal) -> Decimal:
    return _EXACT.multiply(amount, _MILLI) if name == CPU else amount


@remembered(4096)
def _parsed(text: str | int) -> Decimal:
    return parse_quantity(text)


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


_HONOR = "Honor"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_GATED = "Scheduling is blocked due to non-empty scheduling gates"


def demand_of(pod: Mapping[str, Any], claims: Sequence[Volume | Unresolved] = ()) -> Demand:
    """``claims``: what the pod's claims mean, see ``resolved_claims``. Raises ShapeError naming the field."""
    meta, spec = pod["metadata"], spec_of(pod)
    labels, namespace = meta.get("labels") or {}, meta.get("namespace", "")
    affinity = spec.get("affinity") or {}
    volumes, blocked = _volumes(pod, claims)
    return Demand(
        requests=effective_requests(spec, pod.get("status") or {}, bound=bool(spec.get("nodeName"))),
        node_selector=tuple(
            Requirement(key, Operator.IN, (str(value),))
            for key, value in sorted((spec.get("nodeSelector") or {}).items())
        ),
        node_terms=node_terms((affinity.get("nodeAffinity") or {}).get(_REQUIRED)),
        tolerations=tuple(_toleration(each) for each in spec.get("tolerations") or ()),
        ports=tuple(_host_ports(spec)),
        affinity=_pod_terms(affinity, "podAffinity", labels, namespace),
        anti_affinity=_pod_terms(affinity, "podAntiAffinity", labels, namespace),
        spread=tuple(_spreads(spec, labels)),
        volumes=volumes,
        blocked=_GATED if spec.get("schedulingGates") else blocked,
    )


def claims_of(pod: Mapping[str, Any]) -> list[str]:
    """Names of the pod's PersistentVolumeClaims, those that are made for it included."""
    claims = []
    for volume in spec_of(pod).get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            claims.append(str(volume["persistentVolumeClaim"].get("claimName")))
        elif volume.get("ephemeral"):
            claims.append(f"{pod['metadata']['name']}-{volume.get('name')}")
    return claims


def resolved_claims(pod: Mapping[str, Any], book: VolumeBook) -> tuple[Volume | Unresolved, ...]:
    """What each of the pod's claims means now."""
    return tuple(book.resolve(_claim(pod, name)) for name in claims_of(pod))


def _volumes(pod: Mapping[str, Any], claims: Sequence[Volume | Unresolved]) -> tuple[tuple[Volume, ...], str]:
    """The volumes, and why no other Node can have the pod. One that has a Node keeps it, with the volumes known.

    As for kube-scheduler a pod that is moved comes anew: with a claim that is missing or unbound it stays pending.
    """
    found = tuple(each for each in claims if isinstance(each, Volume))
    missing = [each for each in claims if isinstance(each, Unresolved)]
    if not missing:
        return found, ""
    why = min(missing, key=lambda each: each.rank).why
    return (found if spec_of(pod).get("nodeName") else ()), why


def _claim(pod: Mapping[str, Any], name: str) -> tuple[str, str]:
    return pod["metadata"].get("namespace", ""), name


def _toleration(found: Mapping[str, Any]) -> Toleration:
    key, operator, value, effect = (str(found.get(name) or "") for name in ("key", "operator", "value", "effect"))
    return Toleration(key, operator, value, effect)


def _host_ports(spec: Mapping[str, Any]) -> Iterator[HostPort]:
    """Of containers that run as long as the pod does."""
    sidecars = (each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always")
    for container in (*sidecars, *(spec.get("containers") or ())):
        for port in container.get("ports") or ():
            number = port.get("hostPort")
            if isinstance(number, int) and number > 0:
                yield HostPort(port.get("hostIP") or ANY_IP, port.get("protocol") or "TCP", number)


def _pod_terms(
    affinity: Mapping[str, Any], kind: str, labels: Mapping[str, str], namespace: str
) -> tuple[PodTerm, ...]:
    found = []
    for index, term in enumerate((affinity.get(kind) or {}).get(_REQUIRED) or ()):
        field = f"spec.affinity.{kind}.{_REQUIRED}[{index}]"
        selector = _selector(term.get("labelSelector"), f"{field}.labelSelector")
        selector = _narrowed(selector, _same(term.get("matchLabelKeys"), labels, Operator.IN))
        selector = _narrowed(selector, _same(term.get("mismatchLabelKeys"), labels, Operator.NOT_IN))
        listed, others = term.get("namespaces") or (), term.get("namespaceSelector")
        own = not listed and others is None
        found.append(
            PodTerm(
                selector,
                str(term.get("topologyKey", "")),
                frozenset((namespace,) if own else map(str, listed)),
                _selector(others, f"{field}.namespaceSelector"),
            )
        )
    return tuple(found)


def _spreads(spec: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[Spread]:
    for index, each in enumerate(spec.get("topologySpreadConstraints") or ()):
        if each.get("whenUnsatisfiable", "DoNotSchedule") != "DoNotSchedule":
            continue
        field = f"spec.topologySpreadConstraints[{index}]"
        max_skew, min_domains = each.get("maxSkew"), each.get("minDomains")
        if not isinstance(max_skew, int) or max_skew < 1:
            raise ShapeError(f"{field}.maxSkew", "must be a whole number above 0")
        selector = _selector(each.get("labelSelector"), f"{field}.labelSelector")
        yield Spread(
            max_skew,
            str(each.get("topologyKey", "")),
            _narrowed(selector, _same(each.get("matchLabelKeys"), labels, Operator.IN)),
            min_domains if isinstance(min_domains, int) else 1,
            honors_affinity=(each.get("nodeAffinityPolicy") or _HONOR) == _HONOR,
            honors_taints=each.get("nodeTaintsPolicy") == _HONOR,
        )


def _selector(found: Any, field: str) -> Selector:
    try:
        return from_label_selector(found)
    except SelectorError as error:
        raise ShapeError(f"{field}.{error.field}" if error.field else field, error.message) from None


def _same(keys: Any, labels: Mapping[str, str], operator: Operator) -> tuple[Requirement, ...]:
    return tuple(Requirement(str(key), operator, (labels[key],)) for key in keys or () if key in labels)


def _narrowed(selector: Selector, more: tuple[Requirement, ...]) -> Selector:
    """With further requirements, those that it has already left out (the API server merges them as well)."""
    missing = tuple(each for each in more if each not in selector.requirements)
    if selector is NOTHING or not missing:
        return selector
    return Selector((*selector.requirements, *missing), selector.nothing)
