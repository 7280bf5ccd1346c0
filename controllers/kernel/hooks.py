"""Annotations and pauses by which others hold the deletion of a Machine up, as Cluster API has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from api import names
from controllers.kernel.ownership import cluster_of, paused_by
from controllers.kernel.refs import Obj, annotations_of
from controllers.kernel.view import View

PRE_DRAIN = (names.PRE_DRAIN_HOOK_PREFIX, names.OWN_PRE_DRAIN_HOOK_PREFIX)
PRE_TERMINATE = (names.PRE_TERMINATE_HOOK_PREFIX, names.OWN_PRE_TERMINATE_HOOK_PREFIX)


def hook_of(annotations: Mapping[str, Any], prefixes: Iterable[str]) -> str:
    """The first annotation that holds the deletion up, "" if none does."""
    marks = tuple(f"{prefix}/" for prefix in prefixes)
    return next((name for name in sorted(annotations) if name.startswith(marks)), "")


def keeps_its_host(machine: Obj, view: View) -> bool:
    """Whether its host must not go now, though nothing is known of the host: somebody has said so on the Machine."""
    hook = hook_of(annotations_of(machine), (*PRE_DRAIN, *PRE_TERMINATE))
    return bool(hook or paused_by((machine, cluster_of(machine, view))))
