"""What a core Pod asks of a Node, read from its spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from api.reading import spec_of
from api.selectors import NOTHING, Operator, Requirement, Selector, SelectorError, from_label_selector
from controllers.scheduling.amounts import ShapeError
from controllers.scheduling.node_terms import node_terms
from controllers.scheduling.pod_requests import effective_requests
from controllers.scheduling.shapes import ANY_IP, Demand, HostPort, PodTerm, Spread, Toleration, Volume
from controllers.scheduling.volumes import Unresolved, VolumeBook

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
