"""Is an object to be left alone, and at whose request?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from api import names
from api.secrets import without_secrets
from controllers.kernel.refs import CLUSTER, MACHINE, Key, Obj, annotations_of, key_of, labels_of, mapping, spec_of
from controllers.kernel.view import View

SPEC_PAUSED_STAMP = "spec.paused"
"""Value under which a MachineDeployment's own ``spec.paused`` is shown to the Cluster Autoscaler (which reads only the
annotation). It says nothing new to us: read back as a pause, it would outlive ``spec.paused``."""
_MERE_YES: Final = frozenset({"", "true", "yes", "1"})
_LONGEST_TEXT: Final = 200
"""Characters of what a person wrote into the annotation."""


def cluster_name_of(obj: Obj) -> str:
    """The Cluster that a Machine or a set belongs to: by ``clusterName``, else by label; "" for the implicit one."""
    spec = spec_of(obj)
    template = mapping(spec.get("template"))
    labels = mapping(mapping(template.get("metadata")).get("labels"))
    named = (
        spec.get("clusterName"),
        labels_of(obj).get(names.CLUSTER_NAME_LABEL),
        spec_of(template).get("clusterName"),
        labels.get(names.CLUSTER_NAME_LABEL),
    )
    return next((name for name in named if name and isinstance(name, str)), "")


def cluster_of(obj: Obj, view: View) -> Obj | None:
    """The Cluster object of ``cluster_name_of``; None if there is none (yet)."""
    name = cluster_name_of(obj)
    return view.get(CLUSTER, Key(obj["metadata"].get("namespace", ""), name)) if name else None


def paused_by(objects: Iterable[Obj | None]) -> str:
    """Why controllers must leave the first of ``objects`` alone, "" if they need not.

    Give the object itself, then its owners up to the Cluster. A Cluster also pauses by ``spec.paused``
    (a MachineDeployment's ``spec.paused`` pauses only its rollout). Initializers hold a Machine back like a pause.
    """
    for obj in objects:
        why = _pause_of(obj) if obj is not None else ""
        if obj is not None and why:
            return f"{obj.get('kind') or 'object'} {key_of(obj)} {why}"
    return ""


def _text_of(value: str) -> str:
    """What a person wrote there, such as why; "" for a mere yes."""
    text = without_secrets(" ".join(value.split()))
    if text.lower() in _MERE_YES:
        return ""
    return f": {text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + '…'}"


def _pause_of(obj: Obj) -> str:
    """What of ``obj`` itself says so. Asked of each Machine whenever its sets and checks are looked at."""
    value = annotations_of(obj)
    if value:
        waits_for = value.get(names.INITIALIZERS_ANNOTATION)
        if waits_for and obj.get("kind") == MACHINE.name:
            return f"waits for initializers: {waits_for}"
        for annotation in names.PAUSED_ANNOTATIONS:
            if value.get(annotation, SPEC_PAUSED_STAMP) != SPEC_PAUSED_STAMP:
                return f"has the annotation {annotation}{_text_of(value[annotation])}"
    if obj.get("kind") == CLUSTER.name and spec_of(obj).get("paused") is True:
        return "has spec.paused"
    return ""
