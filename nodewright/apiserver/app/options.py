"""The options of a request, from its query and, for deletes, its body."""

from __future__ import annotations

from typing import Any

from multidict import MultiMapping

from nodewright.apiserver.app.requests import dry_run, flag, number
from nodewright.apiserver.values import (
    ApiError,
    Cause,
    DeleteOptions,
    ListOptions,
    Obj,
    WatchOptions,
    WriteOptions,
)

_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_PROPAGATIONS = ("Foreground", "Background", "Orphan")
_MAX_MANAGER = 128


def list_options(query: MultiMapping[str]) -> ListOptions:
    """Read the options of a LIST. Raises ApiError 400, 422."""
    limit = max(0, number(query, "limit") or 0)
    if query.get("resourceVersion") == "0":
        limit = 0  # upstream's watch cache answers these, and knows no pages
    if "sendInitialEvents" in query:
        raise _list_invalid("sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list")
    return ListOptions(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        limit=limit,
        continue_=query.get("continue", ""),
        resource_version=query.get("resourceVersion", ""),
        resource_version_match=query.get("resourceVersionMatch", ""),
    )


def watch_options(query: MultiMapping[str]) -> WatchOptions:
    """Read the options of a WATCH. Raises ApiError 422 for the combinations that KEP-3157 forbids."""
    initial = flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None
    match = query.get("resourceVersionMatch", "")
    if initial is not None and match != "NotOlderThan":
        message = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        raise _list_invalid("resourceVersionMatch", message)
    if match and initial is None:
        message = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        raise _list_invalid("resourceVersionMatch", message)
    return WatchOptions(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        resource_version=query.get("resourceVersion", ""),
        send_initial_events=initial,
    )


def write_options(query: MultiMapping[str], verb: str, user_agent: str) -> WriteOptions:
    """Read the options of a create, update or patch. Raises ApiError 422.

    Without a field manager the client's name stands in, as in kube-apiserver.
    """
    kind = f"{verb.capitalize()}Options"
    validation = query.get("fieldValidation", "")
    if validation not in _VALIDATIONS:
        supported = ", ".join(f'"{value}"' for value in _VALIDATIONS)
        message = f'Unsupported value: "{validation}": supported values: {supported}'
        raise _invalid(kind, Cause("fieldValidation", "FieldValueNotSupported", message))
    return WriteOptions(
        field_manager=_field_manager(query, kind) or user_agent,
        field_validation=validation,
        dry_run=dry_run(query.getall("dryRun", []), kind),
    )


def _field_manager(query: MultiMapping[str], kind: str) -> str:
    manager = query.get("fieldManager", "")
    if len(manager) > _MAX_MANAGER:
        message = f"Too long: may not be more than {_MAX_MANAGER} bytes"
        raise _invalid(kind, Cause("fieldManager", "FieldValueTooLong", message))
    if not manager.isprintable():
        message = f"Invalid value: {manager!r}: should only contain printable characters"
        raise _invalid(kind, Cause("fieldManager", "FieldValueInvalid", message))
    return manager


def apply_force(query: MultiMapping[str], *, is_apply: bool) -> bool:
    """Read `force`, which belongs to server-side apply, as does an explicit manager. Raises ApiError 422."""
    if is_apply:
        if not query.get("fieldManager"):
            cause = Cause("fieldManager", "FieldValueRequired", "Required value: is required for apply patch")
            raise _invalid("PatchOptions", cause)
        return flag(query, "force")
    if "force" in query:
        cause = Cause("force", "FieldValueForbidden", "Forbidden: may not be specified for non-apply patch")
        raise _invalid("PatchOptions", cause)
    return False


def delete_options(query: MultiMapping[str], body: Obj | None) -> DeleteOptions:
    """Read `metav1.DeleteOptions` from the body, or where there is none from the query. Raises ApiError 400, 422."""
    asked = body or _delete_options_in(query)
    preconditions = asked.get("preconditions") or {}
    directives = asked.get("dryRun") or []
    if not isinstance(preconditions, dict) or not isinstance(directives, list):
        raise ApiError.bad_request("DeleteOptions: preconditions must be an object, dryRun a list")
    grace = asked.get("gracePeriodSeconds")
    return DeleteOptions(
        propagation=_propagation(asked.get("propagationPolicy") or "", asked.get("orphanDependents")),
        uid=str(preconditions.get("uid") or ""),
        resource_version=str(preconditions.get("resourceVersion") or ""),
        grace_seconds=grace if type(grace) is int else None,
        dry_run=dry_run(directives, "DeleteOptions"),
    )


def _delete_options_in(query: MultiMapping[str]) -> Obj:
    """Give what the query says as a body says it."""
    return {
        "gracePeriodSeconds": number(query, "gracePeriodSeconds"),
        "orphanDependents": flag(query, "orphanDependents") if "orphanDependents" in query else None,
        "propagationPolicy": query.get("propagationPolicy", ""),
        "dryRun": query.getall("dryRun", []),
    }


def _propagation(policy: str, orphan: Any) -> Any:
    """Read the policy; `orphanDependents` is its elder sister and may not go with it."""
    if policy and orphan is not None:
        message = "Invalid value: orphanDependents and deletionPropagation cannot be both set"
        raise _invalid("DeleteOptions", Cause("propagationPolicy", "FieldValueInvalid", message))
    if orphan is not None:
        return "Orphan" if orphan else "Background"
    if policy and policy not in _PROPAGATIONS:
        supported = ", ".join(f'"{value}"' for value in (*_PROPAGATIONS, "nil"))
        message = f'Unsupported value: "{policy}": supported values: {supported}'
        raise _invalid("DeleteOptions", Cause("propagationPolicy", "FieldValueNotSupported", message))
    return policy


def _list_invalid(field: str, message: str) -> ApiError:
    return _invalid("ListOptions", Cause(field, "FieldValueForbidden", message))


def _invalid(kind: str, cause: Cause) -> ApiError:
    return ApiError.invalid(f"{kind}.meta.k8s.io", "", [cause])
