"""A Machine template in two halves: what flows to existing Machines, and what makes a new revision.

Labels and annotations of the Machines (``metadata``) flow in place. Of ``spec`` each field says in its declaration in
``api/machine.py`` what a change of it does; a field that nobody knows is a new revision: hosts may depend on it.
A change of ``replicas`` is outside of the template, so it never rolls anything (CAPI#12990).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from api import limits, names
from api.behaviour import NOT_GIVEN, Fields
from api.declared import MACHINE_SPEC
from api.selectors import NOTHING, Selector, SelectorError, from_label_selector
from controllers.kernel.memory import digest
from controllers.kernel.refs import Kind, spec_of

IN_PLACE_SCALARS = MACHINE_SPEC.scalars
"""Fields of ``spec`` that are copied as they are; ``metadata`` and ``taints`` are merged key by key."""
IN_PLACE_FIELDS = frozenset(MACHINE_SPEC.in_place)
"""Fields of ``spec`` that need no rollout."""
NEVER_FROM_TEMPLATE = frozenset(MACHINE_SPEC.own)
FAILURE_DOMAIN = "failureDomain"
RESTARTS = {"restartedAt": names.RESTARTED_AT_ANNOTATION, "rolloutAfter": names.ROLLOUT_AFTER_ANNOTATION}
"""Annotations of a template that ask for other hosts, by their name in the rollout part."""
HASH_LENGTH = 8


def rollout_part(template: Mapping[str, Any], fields: Fields = MACHINE_SPEC) -> dict[str, Any]:
    """What decides whether two templates are the same revision.

    The three generations of providerConfig are one field here; null and empty optional fields are left out, so that
    what an API server fills in or drops makes no revision.
    """
    spec = spec_of(template)
    outside = fields.outside_revision
    part = {key: fields.meant(key, value) for key, value in spec.items() if key not in outside}
    part = {key: value for key, value in part.items() if value is not NOT_GIVEN}
    config = part.pop("providerSpec", None)
    if config is not None:
        part.setdefault("providerConfig", config)
    if isinstance(part.get("versions"), Mapping):
        part["versions"] = {key: value for key, value in part["versions"].items() if value not in (None, {}, "")}
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    for name, annotation in RESTARTS.items():
        if annotation in annotations:
            part[name] = annotations[annotation]
    return part


def is_made_of(machine_spec: object, part: Mapping[str, Any]) -> bool:
    """Whether a Machine's spec is what the rollout part of a template asks for.

    A template without a failure domain leaves it to the set, which chose one.
    """
    own = rollout_part({"spec": machine_spec})
    if FAILURE_DOMAIN not in part:
        own.pop(FAILURE_DOMAIN, None)
    return own == part


def template_hash(template: Mapping[str, Any], collisions: int = 0) -> str:
    """The hash in names and labels; each collision makes it one character longer, then other altogether."""
    part = rollout_part(template)
    free = limits.MAX_TEMPLATE_HASH_LENGTH - HASH_LENGTH
    if collisions <= free:
        return digest(part, HASH_LENGTH + collisions)
    return digest([part, collisions], HASH_LENGTH)


def difference(have: Mapping[str, Any], want: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON merge patch (RFC 7386) that turns ``have`` into ``want`` exactly: other keys are removed."""
    patch: dict[str, Any] = {key: None for key in have if key not in want}
    for key, value in want.items():
        old = have.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            inner = difference(old, value)
            if inner:
                patch[key] = inner
        elif key not in have or old != value:
            patch[key] = value
    return patch


def template_problem(template: object) -> str:
    """What is wrong with the shape of ``spec.template``, "" if Machines can be made from it."""
    if not isinstance(template, Mapping):
        return "spec.template: must be an object"
    spec = template.get("spec")
    if spec is not None and not isinstance(spec, Mapping):
        return "spec.template.spec: must be an object"
    places = {"spec.template.metadata": template.get("metadata")}
    places["spec.template.spec.metadata"] = (spec or {}).get("metadata")
    for place, metadata in places.items():
        if metadata is not None and not isinstance(metadata, Mapping):
            return f"{place}: must be an object"
        for part in ("labels", "annotations"):
            found = (metadata or {}).get(part)
            if found is not None and not _is_text_map(found):
                return f"{place}.{part}: must be a map of strings"
    taints = (spec or {}).get("taints")
    if taints is not None and not _are_taints(taints):
        return "spec.template.spec.taints: must be a list of taints with key and effect"
    return ""


@dataclass(frozen=True, slots=True)
class Pattern:
    """What an owner makes (``template``), and by what it knows its own. ``problem`` names the field at fault."""

    selector: Selector = NOTHING
    template: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


def read_pattern(label_selector: Any, template: object, selects: Kind) -> Pattern:
    """``spec.selector`` and ``spec.template`` of an owner of objects of kind ``selects``; never raises."""
    problem = template_problem(template)
    if problem or not isinstance(template, Mapping):
        return Pattern(problem=problem)
    try:
        selector = from_label_selector(label_selector)
    except SelectorError as error:
        return Pattern(problem=f"spec.selector.{error}" if error.field else f"spec.selector: {error}")
    if selector.empty or selector.nothing:
        return Pattern(
            problem=f"spec.selector: must not be empty, it would select every {selects.name} of the namespace"
        )
    if not selector.matches((template.get("metadata") or {}).get("labels")):
        return Pattern(problem="spec.template.metadata.labels: do not match spec.selector")
    return Pattern(selector, template)


def is_count(value: object) -> bool:
    """A non-negative integer (in Python, True is one too)."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_text_map(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for text in value.values())


def _are_taints(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(taint, Mapping) and isinstance(taint.get("key"), str) and isinstance(taint.get("effect"), str)
        for taint in value
    )
