"""Names of what controllers create: derived, so that a repeated create collides instead of making a duplicate."""

from __future__ import annotations

from api import limits
from controllers.kernel.digest import digest


def machine_prefix(set_name: str, set_uid: str) -> str:
    """``<machineset>-<digest of its uid>-``; a namesake made after the MachineSet was deleted gets other names.

    A MachineSet name that is too long for a Node name (MAX_MACHINESET_NAME) is cut: the uid tells them apart.
    """
    stem = set_name[: limits.MAX_MACHINESET_NAME].rstrip("-.")
    return f"{stem}-{digest(set_uid, limits.OWNER_DIGEST_LENGTH)}-"


def machine_name(prefix: str, ordinal: int) -> str:
    return f"{prefix}{ordinal}"


def ordinal_of(name: str, prefix: str) -> int | None:
    """The ordinal in a Machine's name; None for a name that this MachineSet did not make (an adopted Machine)."""
    tail = name[len(prefix) :]
    if not name.startswith(prefix) or not tail.isascii() or not tail.isdigit():
        return None
    return int(tail) if tail == "0" or tail[0] != "0" else None


def machine_set_name(deployment_name: str, template_hash: str) -> str:
    """``<machinedeployment>-<template hash>``, cut to what leaves room for Machine names."""
    free = limits.MAX_MACHINESET_NAME - len(template_hash) - 1
    return f"{deployment_name[:free].rstrip('-.')}-{template_hash}"


def label_value(name: str) -> str | None:
    """``name`` if it can stand as a label value, else None: then the label is left out."""
    return name if len(name) <= limits.MAX_LABEL_VALUE else None
