"""What must hold for an object's metadata, and what does the server itself write there?

The rules are those of apimachinery's ValidateObjectMeta and ValidateObjectMetaUpdate, and of the registry's
BeforeCreate and BeforeUpdate.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

from nodewright.apiserver.store.names import (
    label_value_faults,
    name_faults,
    prefix_faults,
    qualified_name_faults,
)
from nodewright.apiserver.values import ApiError, Cause, Obj, Resource

MAX_ANNOTATIONS = 256 * 1024
"""Bytes that all annotations of an object may have together."""

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"

_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def timestamp(moment: datetime) -> str:
    """Write a moment as metav1.Time: UTC, whole seconds."""
    return moment.astimezone(UTC).isoformat(timespec="seconds")[:19] + "Z"


def fill_new(metadata: Obj, uid: str, now: str) -> None:
    """Write what the server decides on create, over whatever the client sent. Changes `metadata` in place."""
    for field in ("selfLink", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"):
        metadata.pop(field, None)
    metadata["uid"] = uid
    metadata["creationTimestamp"] = now
    _drop_empty(metadata)


def carry_over(metadata: Obj, old: Obj) -> None:
    """Fill what an update may leave out, and keep what it can't take away. Changes `metadata` in place."""
    metadata.pop("selfLink", None)
    for field in ("name", "namespace", "uid"):
        if not metadata.get(field) and field in old:
            metadata[field] = old[field]
    for field in ("creationTimestamp", "deletionTimestamp", "generation", "generateName"):
        if field in old:
            metadata[field] = old[field]
    if "generation" not in old:
        metadata.pop("generation", None)
    if metadata.get("deletionGracePeriodSeconds") is None and "deletionGracePeriodSeconds" in old:
        metadata["deletionGracePeriodSeconds"] = old["deletionGracePeriodSeconds"]
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if field in metadata and metadata[field] is None:
            del metadata[field]
    metadata["resourceVersion"] = old["resourceVersion"]
    _carry_over_managed_fields(metadata, old)
    _drop_empty(metadata)


def _carry_over_managed_fields(metadata: Obj, old: Obj) -> None:
    """Keep them where they are left out; an empty list, or one empty entry, resets them (server-side apply docs)."""
    if "managedFields" not in metadata and "managedFields" in old:
        metadata["managedFields"] = old["managedFields"]
    elif metadata.get("managedFields") in (None, [], [{}]):
        metadata.pop("managedFields", None)


def _drop_empty(metadata: Obj) -> None:
    for field in ("labels", "annotations", "finalizers", "ownerReferences", "generateName"):
        if field in metadata and not metadata[field]:
            del metadata[field]


def _name_faults(resource: Resource, name: str, prefix: str) -> list[Cause]:
    found = [
        invalid("metadata.generateName", f'"{prefix}"', fault)
        for fault in (prefix_faults(resource.plural, prefix) if prefix else ())
    ]
    if not name:
        found.append(Cause("metadata.name", "FieldValueRequired", "Required value: name or generateName is required"))
    for fault in name_faults(resource.plural, name) if name else ():
        found.append(invalid("metadata.name", f'"{name}"', fault))
    return found


def faults(resource: Resource, metadata: Obj) -> list[Cause]:
    """Say what is wrong with the metadata of an object that is about to be stored."""
    found = _name_faults(resource, metadata.get("name", ""), metadata.get("generateName", ""))
    if "labels" in metadata:
        found += label_faults("metadata.labels", metadata["labels"])
    if "annotations" in metadata:
        found += _annotation_faults(metadata["annotations"])
    for finalizer in metadata.get("finalizers") or ():
        for fault in qualified_name_faults(finalizer):
            found.append(invalid("metadata.finalizers", f'"{finalizer}"', fault))
    if "ownerReferences" in metadata:
        found += _owner_faults(metadata["ownerReferences"])
    return found


def update_faults(metadata: Obj, old: Obj) -> list[Cause]:
    """Say what an update changed in metadata that it must not."""
    found = []
    for field in _IMMUTABLE:
        if metadata.get(field) != old.get(field):
            value = metadata.get(field)
            shown = f'"{value}"' if isinstance(value, str) else "null" if value is None else str(value)
            found.append(invalid(f"metadata.{field}", shown, "field is immutable"))
    if old.get("deletionTimestamp"):
        known = old.get("finalizers") or ()
        new = [finalizer for finalizer in metadata.get("finalizers") or () if finalizer not in known]
        if new:
            listed = ", ".join(f'"{finalizer}"' for finalizer in sorted(new))
            message = (
                "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
                f"[]string{{{listed}}}"
            )
            found.append(Cause("metadata.finalizers", "FieldValueForbidden", message))
    return found


def states_revision(sent: str) -> bool:
    """Say whether a resourceVersion names a state: "0" names none, and what is no number is not looked at."""
    return sent.isascii() and sent.isdigit() and int(sent[:32]) != 0


def check_revision(resource: Resource, name: str, sent: str, old: Obj) -> None:
    """Refuse a write that was made from an older state: ApiError 409."""
    if sent and sent != old["resourceVersion"]:
        raise ApiError.conflict(
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )


def check_uid(resource: Resource, name: str, uid: str, old: Obj) -> None:
    """Refuse an update that was meant for another object of that name: ApiError 409."""
    if uid and uid != old["uid"]:
        text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['uid']}"
        raise ApiError.conflict(resource, name, text)


def check_preconditions(resource: Resource, name: str, uid: str, revision: str, old: Obj) -> None:
    """Refuse a delete that was meant for another object or another state of it: ApiError 409."""
    text = ""
    if uid and uid != old["uid"]:
        text = f"the UID in the precondition ({uid}) does not match the UID in record ({old['uid']}). "
        text += "The object might have been deleted and then recreated"
    elif revision and revision != old["resourceVersion"]:
        text = f"the ResourceVersion in the precondition ({revision}) does not match the ResourceVersion in record "
        text += f"({old['resourceVersion']}). The object might have been modified"
    if text:
        details = {"name": name, **({"group": resource.group} if resource.group else {}), "kind": resource.kind}
        message = f'Operation cannot be fulfilled on {resource.group_kind} "{name}": {text}'
        raise ApiError(409, "Conflict", message, details)


def invalid(field: str, value: str, message: str) -> Cause:
    """Make the cause for a bad value; `value` is shown as it is, so quote a text."""
    return Cause(field, "FieldValueInvalid", f"Invalid value: {value}: {message}")


def label_faults(field: str, labels: dict[str, str]) -> list[Cause]:
    """Say which keys and values can't be labels."""
    found = []
    for key, value in labels.items():
        found += [invalid(field, f'"{key}"', fault) for fault in qualified_name_faults(key)]
        found += [invalid(field, f'"{value}"', fault) for fault in label_value_faults(value)]
    return found


def _annotation_faults(annotations: dict[str, str]) -> list[Cause]:
    found, size = [], 0
    for key, value in annotations.items():
        size += len(key.encode()) + len(value.encode())
        found += [invalid("metadata.annotations", f'"{key}"', fault) for fault in qualified_name_faults(key.lower())]
    if size > MAX_ANNOTATIONS:
        message = f"Too long: may not be more than {MAX_ANNOTATIONS} bytes"
        found.append(Cause("metadata.annotations", "FieldValueTooLong", message))
    return found


def _owner_faults(references: list[Obj]) -> list[Cause]:
    found, controllers = [], []
    for reference in references:
        group, _, version = str(reference.get("apiVersion") or "").rpartition("/")
        if not version or "/" in group:
            value = f'"{reference.get("apiVersion") or ""}"'
            found.append(invalid("metadata.ownerReferences.apiVersion", value, "version must not be empty"))
        for field in ("kind", "name", "uid"):
            if not reference.get(field) or not isinstance(reference[field], str):
                found.append(invalid(f"metadata.ownerReferences.{field}", '""', "must not be empty"))
        if reference.get("controller"):
            controllers.append(f"{reference.get('kind')}/{reference.get('name')}")
    if len(controllers) > 1:
        message = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {controllers[1]}"
        )
        shown = json.dumps(references, separators=(",", ":"))
        found.append(invalid("metadata.ownerReferences", shown, message))
    return found
