"""What a kubelet can register with: keys and values of labels, annotations and taints, and versions, on a Machine.

The CRDs' patterns and CEL rules, the webhook, ``validate`` and the controllers take their rules from here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from api.faults import FieldError, child, items, text_of
from api.selectors import label_key_error, label_value_error
from api.yamltext import shown

QUALIFIED_NAME_PATTERN: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
)
"""Kubernetes' qualified name, but for the length of its prefix."""
ANNOTATION_KEY_PATTERN: Final = QUALIFIED_NAME_PATTERN.replace("[a-z0-9]", "[A-Za-z0-9]").replace(
    "[-a-z0-9]", "[-A-Za-z0-9]"
)
"""As Kubernetes compares keys of annotations: without regard to case."""
VERSION_PATTERN: Final = r"^v?[0-9]{1,4}\.[0-9]{1,4}(\.[0-9]{1,4})?([-+][0-9A-Za-z.+-]*)?$"
"""A Kubernetes version, with or without the v: ``1.31.0``, ``v1.32``, ``v1.30.4+k3s1``."""
RUNTIME_NAME_PATTERN: Final = r"^[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?$"
"""``containerd``, ``cri-o``."""
RUNTIME_VERSION_PATTERN: Final = r"^[A-Za-z0-9][-A-Za-z0-9._+~]*$"
"""``1.7.2``, ``v2.0.0-rc.1``, ``1.7.12-0ubuntu2~22.04.1``: what stands for itself in a shell, YAML, JSON and a unit."""
LONGEST_VERSION: Final = 64
LONGEST_RUNTIME_NAME: Final = 63
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")

_KUBELETS_OWN: Final = frozenset(
    {
        "kubernetes.io/hostname", "kubernetes.io/arch", "kubernetes.io/os", "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type", "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone", "failure-domain.kubernetes.io/region",
        "failure-domain.kubernetes.io/zone", "topology.kubernetes.io/region", "topology.kubernetes.io/zone",
        "beta.kubernetes.io/arch", "beta.kubernetes.io/os",
    }
)  # fmt: skip
_KUBELETS_PREFIXES: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")

Errors = Iterator[FieldError]


def kubelet_may_set(label: str) -> bool:
    """Whether ``--node-labels`` takes it: a kubelet ends at once on others below kubernetes.io and k8s.io."""
    prefix = label.rpartition("/")[0]
    reserved = any(prefix == one or prefix.endswith(f".{one}") for one in ("kubernetes.io", "k8s.io"))
    own = any(prefix == one or prefix.endswith(f".{one}") for one in _KUBELETS_PREFIXES)
    return not reserved or own or label in _KUBELETS_OWN


def registration(spec: Mapping[str, Any], path: str) -> Errors:
    """Why no Node could come of a Machine's spec at ``path``."""
    yield from metadata_keys(child(spec, "metadata"), f"{path}.metadata")
    yield from taints(spec, path)
    yield from versions(spec, path)


def metadata_keys(meta: Mapping[str, Any], path: str) -> Errors:
    """Labels and annotations must have the form that Kubernetes asks for."""
    for key, value in child(meta, "labels").items():
        if fault := label_key_error(str(key)):
            yield FieldError(f"{path}.labels[{key}]", f"not a label key: {fault}")
        if fault := label_value_error(value):
            yield FieldError(f"{path}.labels[{key}]", f"{shown(repr(value))} is not a label value: {fault}")
    for key, value in child(meta, "annotations").items():
        if fault := label_key_error(str(key).lower()):
            yield FieldError(f"{path}.annotations[{key}]", f"not an annotation key: {fault}")
        if not isinstance(value, str):
            yield FieldError(f"{path}.annotations[{key}]", f"{shown(value)} is not a string; quote it")


def taints(spec: Mapping[str, Any], path: str) -> Errors:
    for index, taint in items(spec, "taints"):
        here, key, effect = f"{path}.taints[{index}]", text_of(taint, "key"), text_of(taint, "effect")
        if fault := label_key_error(key):
            yield FieldError(f"{here}.key", f"{shown(repr(key))}: {fault}")
        if fault := label_value_error(taint.get("value") or ""):
            yield FieldError(f"{here}.value", f"{shown(repr(taint.get('value')))}: {fault}")
        if effect not in EFFECTS:
            yield FieldError(f"{here}.effect", f"{shown(repr(effect))} is none of {', '.join(EFFECTS)}")


def versions(spec: Mapping[str, Any], path: str) -> Errors:
    asked = child(spec, "versions")
    for name in ("kubelet", "controlPlane"):
        version = asked.get(name)
        if version is not None and not _fits(version, VERSION_PATTERN, LONGEST_VERSION):
            yield FieldError(
                f"{path}.versions.{name}", f"{shown(repr(version))} is not a version like 1.31.0 or v1.31.0"
            )
    runtime, here = child(asked, "containerRuntime"), f"{path}.versions.containerRuntime"
    called, version = runtime.get("name"), runtime.get("version")
    if called is not None and not _fits(called, RUNTIME_NAME_PATTERN, LONGEST_RUNTIME_NAME):
        yield FieldError(f"{here}.name", f"{shown(repr(called))} is not a name like containerd")
    if version is not None and not _fits(version, RUNTIME_VERSION_PATTERN, LONGEST_VERSION):
        yield FieldError(f"{here}.version", f"{shown(repr(version))} is not a version like 1.7.2")


def _fits(value: object, pattern: str, longest: int) -> bool:
    found = isinstance(value, str) and len(value) <= longest and re.fullmatch(pattern, value, re.ASCII)
    return bool(found) and not str(value).endswith("\n")
