"""May this write happen at all? Namespaces that are not there or are going, kinds that are going, bad options."""

from __future__ import annotations

from nodewright.apiserver.store.custom_kinds import CRD_COLLECTION
from nodewright.apiserver.store.kernel import Kernel
from nodewright.apiserver.values import ApiError, Cause, PatchRequest, Resource, WriteOptions

MAX_FIELD_MANAGER = 128
"""Characters of a fieldManager (apimachinery's validation of options)."""


def check_options(options: WriteOptions, request: PatchRequest | None = None) -> None:
    """Refuse options that contradict themselves: ApiError 422, naming the option."""
    causes = []
    manager = options.field_manager
    if len(manager) > MAX_FIELD_MANAGER:
        message = f"Too long: may not be more than {MAX_FIELD_MANAGER} bytes"
        causes.append(Cause("fieldManager", "FieldValueTooLong", message))
    if not manager.isprintable():
        message = f'Invalid value: "{manager!r}": should only contain printable characters'
        causes.append(Cause("fieldManager", "FieldValueInvalid", message))
    if request is not None and request.type == "apply" and not manager:
        message = "Required value: is required for apply patch"
        causes.append(Cause("fieldManager", "FieldValueRequired", message))
    if request is not None and request.type != "apply" and request.force:
        message = "Forbidden: may not be specified for non-apply patch"
        causes.append(Cause("force", "FieldValueForbidden", message))
    if causes:
        kind = "CreateOptions" if request is None else "PatchOptions"
        raise ApiError.invalid(f"{kind}.meta.k8s.io", "", causes)


def admit_create(kernel: Kernel, resource: Resource, namespace: str, name: str) -> None:
    """Refuse a new object where there can be none.

    Raises ApiError 404 if its namespace isn't there, 403 if that or its kind is being deleted.
    """
    if resource.namespaced:
        if not namespace:
            raise ApiError.bad_request("an empty namespace may not be set during creation")
        _admit_to_namespace(kernel, resource, namespace, name)
    if not resource.builtin:
        crd = kernel.state.collection(CRD_COLLECTION).get("", resource.group_resource)
        if crd is not None and crd["metadata"].get("deletionTimestamp"):
            message = "create not allowed while custom resource definition is terminating"
            raise ApiError.forbidden(resource, name, message)


def _admit_to_namespace(kernel: Kernel, resource: Resource, namespace: str, name: str) -> None:
    found = kernel.state.collection("namespaces").get("", namespace)
    if found is None:
        namespaces = kernel.registry.find("", "v1", "namespaces")
        assert namespaces is not None
        raise ApiError.not_found(namespaces, namespace)
    if found["metadata"].get("deletionTimestamp"):
        cause = Cause("metadata.namespace", "NamespaceTerminating", f"namespace {namespace} is being terminated")
        raise ApiError.forbidden(
            resource,
            name,
            f"unable to create new content in namespace {namespace} because it is being terminated",
            [cause],
        )
