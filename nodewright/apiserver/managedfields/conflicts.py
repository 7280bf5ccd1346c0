"""What an apply may not take from others without force, and how that is said."""

from __future__ import annotations

from collections.abc import Sequence

from nodewright.apiserver.managedfields.elements import display
from nodewright.apiserver.managedfields.entries import Entry
from nodewright.apiserver.managedfields.fieldsets import FieldSet, paths
from nodewright.apiserver.validation.gotext import quote
from nodewright.apiserver.values import ApiError, Cause, Resource


def conflict_error(resource: Resource, name: str, found: Sequence[tuple[Entry, FieldSet]]) -> ApiError:
    """Give the 409 that names every contested field and its manager."""
    stated = {_manager_text(entry): [display(path) for path in paths(fields)] for entry, fields in found}
    causes = [
        Cause(path, "FieldManagerConflict", f"conflict with {manager}")
        for manager in sorted(stated)
        for path in stated[manager]
    ]
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}"
    else:
        lines: list[str] = []
        for manager in sorted(stated):
            lines += [f"conflicts with {manager}:", *(f"- {path}" for path in stated[manager])]
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return ApiError.conflict(resource, name, message, causes)


def _manager_text(entry: Entry) -> str:
    text = quote(entry.manager)
    if entry.subresource:
        text += f" with subresource {quote(entry.subresource)}"
    return f"{text} using {entry.api_version}" if entry.operation == "Update" else text
