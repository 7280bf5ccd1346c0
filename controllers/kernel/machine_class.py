"""Which MachineClass a spec names, and whether a Machine may have its host follow a change of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controllers.kernel.digest import digest
from controllers.kernel.refs import MACHINE_CLASS, Key
from controllers.kernel.view import View

CONFIG_FIELDS = ("providerConfig", "providerSpec")
"""Where a provider's configuration stands in a Machine's spec, and at the top of a MachineClass."""
DIGEST_LENGTH = 10


def class_key(spec: Mapping[str, Any], namespace: str) -> Key | None:
    """The MachineClass that a Machine's spec names."""
    for name in CONFIG_FIELDS:
        source = spec.get(name)
        reference = source.get("valueFrom") if isinstance(source, Mapping) else None
        found = reference.get("machineClass") if isinstance(reference, Mapping) else None
        if isinstance(found, Mapping) and isinstance(found.get("name"), str):
            return Key(namespace, found["name"])
    return None


def class_digest(spec: object, namespace: str, view: View) -> str:
    """Digest of the configuration in the MachineClass that ``spec`` names; "" if it names none, or one that is gone."""
    named = class_key(spec, namespace) if isinstance(spec, Mapping) else None
    found = view.get(MACHINE_CLASS, named) if named is not None else None
    if found is None:
        return ""
    try:
        return digest([found.get(name) for name in CONFIG_FIELDS], DIGEST_LENGTH)
    except (TypeError, ValueError):
        return ""
