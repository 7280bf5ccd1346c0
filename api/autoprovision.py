"""The annotation by which a MachineClass is offered to the autoscaler, for node groups that it makes itself.

    metadata:
      annotations:
        nodewright.dev/autoprovision: |
          maxNodes: 20                  # of all groups that are made of the class; 10 without it
          labels: [example.com/team]    # a pod may ask for any value of these by its node selector
          taints: [example.com/batch]   # the same, and the Nodes get the taint KEY=VALUE:NoSchedule
          template:                     # what their Machines have besides, as in a MachineDeployment
            metadata:
              labels: {cluster.k8s.io/cluster-name: prod}
            spec:
              versions: {kubelet: 1.36.3}

``true`` stands for an offer in which nothing is said. What may be asked for is the offer's to say: a pod is of a
tenant, and the labels of Nodes decide whose pods they take.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from api import limits, names, yamltext
from api.noderules import kubelet_may_set
from api.selectors import label_key_error

MOST_KEYS = 16
"""Keys of labels and of taints that one offer opens."""
MOST_TEXT = 16 * 1024
_DEFAULT_NODES = 10
_FIELDS = ("maxNodes", "labels", "taints", "template")
_GIVEN_BY_US = ("providerConfig", "providerSpec", "failureDomain", "name", "providerID")


class OfferError(ValueError):
    """``field``: below the annotation."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        self.message = message


@dataclass(frozen=True, slots=True)
class Offer:
    """``labels`` and ``taints``: keys whose value a pod may choose; ``template``: of the Machines, without a config."""

    max_nodes: int = _DEFAULT_NODES
    labels: tuple[str, ...] = ()
    taints: tuple[str, ...] = ()
    template: Mapping[str, Any] = field(default_factory=dict)

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys of labels that a pod may ask for."""
        return tuple(dict.fromkeys((*self.labels, *self.taints)))


def _loaded(text: str) -> Any:
    if len(text) > MOST_TEXT:
        raise OfferError("", f"more than {MOST_TEXT} characters")
    try:
        return yamltext.load(text)
    except yamltext.TextError as error:
        raise OfferError("", f"no YAML: {error}") from None


def read_offer(text: str) -> Offer | None:
    """None for ``false``: the class is not offered. Raises OfferError naming the field."""
    found = _loaded(text)
    if found is True or found is False:
        return Offer() if found else None
    if not isinstance(found, Mapping):
        raise OfferError("", f"{yamltext.shown(repr(found))} is neither true nor a map of {', '.join(_FIELDS)}")
    for key in found:
        if key not in _FIELDS:
            raise OfferError(yamltext.shown(key), f"no such field; there are {', '.join(_FIELDS)}")
    return Offer(
        max_nodes=_count(found),
        labels=_keys(found, "labels"),
        taints=_keys(found, "taints"),
        template=_template(found.get("template")),
    )


def _count(found: Mapping[str, Any]) -> int:
    value = found.get("maxNodes", _DEFAULT_NODES)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= limits.MAX_REPLICAS:
        raise OfferError("maxNodes", f"{yamltext.shown(repr(value))} is not a number from 1 to {limits.MAX_REPLICAS}")
    return value


def _keys(found: Mapping[str, Any], name: str) -> tuple[str, ...]:
    given = found.get(name) or []
    if not isinstance(given, list) or len(given) > MOST_KEYS:
        raise OfferError(name, f"a list of at most {MOST_KEYS} keys of labels is needed")
    for index, key in enumerate(given):
        fault = label_key_error(key) if isinstance(key, str) else "not a string"
        if not fault and not kubelet_may_set(key):
            fault = "no kubelet may set it on its own Node"
        if fault:
            raise OfferError(f"{name}[{index}]", f"{yamltext.shown(repr(key))}: {fault}")
    return tuple(dict.fromkeys(given))


def _template(given: Any) -> Mapping[str, Any]:
    """Its shape alone; ``api.validate`` judges the MachineDeployment that is made of it."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not set(given) <= {"metadata", "spec"}:
        raise OfferError("template", "a map with metadata and spec is needed, and nothing else")
    for part in ("metadata", "spec"):
        if not isinstance(given.get(part, {}), Mapping):
            raise OfferError(f"template.{part}", "a map is needed")
    for key in _GIVEN_BY_US:
        if key in given.get("spec", {}):
            raise OfferError(f"template.spec.{key}", "is given by the MachineClass and the pods; leave it out")
    inner = given.get("spec", {}).get("metadata", {})
    for path, meta in (("template.metadata", given.get("metadata", {})), ("template.spec.metadata", inner)):
        if not isinstance(meta, Mapping) or not isinstance(meta.get("labels") or {}, Mapping):
            raise OfferError(f"{path}.labels", "a map of labels is needed")
    if not isinstance(given.get("spec", {}).get("taints") or [], list):
        raise OfferError("template.spec.taints", "a list of taints is needed")
    return given


def mark_of(machine_class: str, name: str) -> str:
    """What a MachineDeployment called ``name`` has in its annotation if the autoscaler made it."""
    return f"{machine_class} {name}"


def class_of(name: str, annotations: Mapping[str, str]) -> str:
    """The MachineClass that the MachineDeployment was made of; "" if a person made it, be it by copying another."""
    machine_class, _, own = annotations.get(names.AUTOPROVISIONED_ANNOTATION, "").partition(" ")
    return machine_class if machine_class and own == name else ""
