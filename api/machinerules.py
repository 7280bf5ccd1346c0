"""Rules on a Machine's spec, wherever it stands: in a Machine or in the template of a set or deployment."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, Literal

from api import limits
from api.bootstraprules import bootstrap
from api.declared import MACHINE_SPEC
from api.durations import parse_duration, parse_time
from api.faults import FieldError, child, items, text_of
from api.noderules import metadata_keys, registration
from api.providerconfig import ProviderConfigError, read
from api.selectors import label_value_error

MACHINE_SPEC_FIELDS: Final = frozenset(MACHINE_SPEC.behaviours)
"""Known fields. Others survive, unless they look like one of these misspelt."""
TIMEOUTS: Final = MACHINE_SPEC.timeouts
"""Durations of a deletion. 0 and none mean: never, for ever."""
_LOOKS_LIKE: Final = 0.85
_LOOKED_AT: Final = 64
"""Fields of a spec that are compared with the known ones; more are no slip, and comparing is slow."""

Errors = Iterator[FieldError]


def template(spec: Mapping[str, Any], namespace: str) -> Errors:
    """Rules on ``spec.template`` of a set or deployment."""
    found = child(spec, "template")
    yield from metadata_keys(child(found, "metadata"), "spec.template.metadata")
    inner, path = child(found, "spec"), "spec.template.spec"
    yield from machine_spec(inner, path, namespace)
    if inner.get("providerID"):
        yield FieldError(f"{path}.providerID", "may not be set in a template: every Machine has a host of its own")
    if child(inner, "metadata").get("name"):
        yield FieldError(f"{path}.metadata.name", "may not be set in a template: every Node has a name of its own")


def failure_domains(spec: Mapping[str, Any], template_spec: Mapping[str, Any] | None = None) -> Errors:
    """Rules on ``spec.failureDomains`` of a Cluster, or of a set with its template's ``spec``."""
    named, path = spec.get("failureDomains"), "spec.failureDomains"
    if fault := failure_domains_fault(named):
        yield FieldError(path, fault)
    elif named and template_spec and template_spec.get("failureDomain"):
        yield FieldError(path, "only one of failureDomains and template.spec.failureDomain may be given")


def failure_domains_fault(named: object) -> str:
    """What is wrong with a list of failure domains, "" if nothing is."""
    if named is None:
        return ""
    if not isinstance(named, list) or not all(isinstance(name, str) and name for name in named):
        return "must be a list of names"
    if len(named) > limits.MAX_FAILURE_DOMAINS:
        return f"has {len(named)} names, at most {limits.MAX_FAILURE_DOMAINS} are allowed"
    return "names a failure domain twice" if len(set(named)) < len(named) else ""


def machine_spec(spec: Mapping[str, Any], path: str, namespace: str) -> Errors:
    """Rules on one Machine's spec at ``path``; ``namespace`` is that of the object, "" if it is not known."""
    yield from _misspelt(spec, path)
    yield from registration(spec, path)
    yield from _taints_given_twice(spec, path)
    yield from provider_config(spec, path, namespace)
    for name in TIMEOUTS:
        if spec.get(name) is not None and (fault := time_or_duration(spec[name], "duration")):
            yield FieldError(f"{path}.{name}", fault)
    yield from bootstrap(spec, path)
    cluster = spec.get("clusterName")
    if cluster is not None and (not cluster or label_value_error(cluster)):
        yield FieldError(f"{path}.clusterName", "must be usable as the value of a label, of at most 63 characters")


def provider_config(spec: Mapping[str, Any], path: str, namespace: str) -> Errors:
    """Given at most once, readable, and never from another namespace (its Secrets would come with it)."""
    try:
        config = read(spec)
    except ProviderConfigError as fault:
        yield FieldError(f"{path}.{fault.field}", fault.message)
        return
    reference = config.machine_class_ref if config else None
    if config and reference and namespace and reference.namespace not in ("", namespace):
        yield FieldError(
            f"{path}.{config.source_field}.machineClass.namespace",
            f"{reference.namespace!r} is not the namespace of the object, {namespace!r}",
        )


def time_or_duration(value: Any, what: Literal["time", "duration"]) -> str:
    """Why ``value`` is no RFC 3339 time or no duration; "" if it is one."""
    if not isinstance(value, str):
        return f"{value!r} is not a string"
    try:
        if what == "time":
            parse_time(value)
        else:
            parse_duration(value)
    except ValueError as fault:
        return str(fault)
    return ""


def _taints_given_twice(spec: Mapping[str, Any], path: str) -> Errors:
    seen: set[tuple[str, str]] = set()
    for index, taint in items(spec, "taints"):
        key, effect = text_of(taint, "key"), text_of(taint, "effect")
        if (key, effect) in seen:
            yield FieldError(f"{path}.taints[{index}]", f"{key}:{effect} is given twice")
        seen.add((key, effect))


def _misspelt(spec: Mapping[str, Any], path: str) -> Errors:
    """The API server keeps unknown fields here, for old manifests, so that a slip would pass in silence."""
    for name in islice(spec, _LOOKED_AT):
        if name in MACHINE_SPEC_FIELDS or not isinstance(name, str) or len(name) > limits.MAX_LABEL_VALUE:
            continue
        close = difflib.get_close_matches(name, sorted(MACHINE_SPEC_FIELDS), n=1, cutoff=_LOOKS_LIKE)
        if close:
            yield FieldError(f"{path}.{name}", f"is unknown; {close[0]} is meant?")
