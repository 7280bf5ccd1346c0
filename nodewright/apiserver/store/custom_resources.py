"""What happens when a CustomResourceDefinition is written? Its kinds are checked, served, changed or withdrawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from nodewright.apiserver.store import custom_kinds
from nodewright.apiserver.store.kernel import Kernel
from nodewright.apiserver.values import ApiError, Cause, Obj, Resource


class CustomResources:
    """Keeps the registry in step with the CRDs. Every method does nothing for other kinds."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def prepare(self, resource: Resource, crd: Obj, old: Obj | None, now: str) -> None:
        """Fill in a CRD's defaults and, if it is sound, the status that naming and approval give it."""
        if not _is_crd(resource):
            return
        custom_kinds.fill_in(crd)
        if not custom_kinds.faults(crd, old) and not crd["metadata"].get("deletionTimestamp"):
            crd["status"] = custom_kinds.status(crd, old, self._kernel.registry, now)

    def faults(self, resource: Resource, crd: Obj, old: Obj | None) -> list[Cause]:
        """Say what is wrong with a CRD, its schemas included."""
        if not _is_crd(resource):
            return []
        found = custom_kinds.faults(crd, old)
        return found or [fault for index in range(len(crd["spec"]["versions"])) for fault in self._schema(crd, index)]

    def changed(self, resource: Resource, crd: Obj) -> None:
        """Serve what a stored CRD defines, instead of what it defined before."""
        if _is_crd(resource):
            self.serve(crd)

    def removed(self, resource: Resource, crd: Obj) -> None:
        """Stop serving the kinds of a removed CRD. Their objects are gone: the cleanup finalizer waited for that."""
        if not _is_crd(resource):
            return
        name = crd["metadata"]["name"]
        self._kernel.registry.withdraw_custom(name)
        self._kernel.shapes.retain(self._kernel.registry.all())
        self._kernel.state.drop(name)

    def resync(self, name: str, crd: Obj | None) -> None:
        """Serve what a CRD defines after it was put back as it was before; None if it was not there."""
        if crd is not None:
            self.serve(crd)
        elif self._kernel.registry.custom(name):
            self._kernel.registry.withdraw_custom(name)
            self._kernel.shapes.retain(self._kernel.registry.all())
            self._kernel.state.drop(name)

    def serve(self, crd: Obj) -> None:
        """Serve a CRD's kinds if its names are accepted; a change of metadata or status alone changes nothing."""
        registry = self._kernel.registry
        name = crd["metadata"]["name"]
        if not custom_kinds.established(crd):
            return
        resources = custom_kinds.resources_of(crd)
        if _definitions(resources) == _definitions(registry.custom(name)):
            return
        registry.serve_custom(name, resources)
        # The collection's history begins now, so that a client can watch from any resourceVersion since.
        self._kernel.state.collection(name)
        self._kernel.shapes.retain(registry.all())

    def _schema(self, crd: Obj, index: int) -> list[Cause]:
        schema = crd["spec"]["versions"][index]["schema"]["openAPIV3Schema"]
        path = custom_kinds.schema_path(crd["spec"]["versions"], index)
        try:
            self._kernel.seams.compile_shape(schema)
        except ApiError as error:
            return [Cause(path, "FieldValueInvalid", error.message)]
        except ValueError as error:
            return [Cause(path, "FieldValueInvalid", f"Invalid value: {error}")]
        return []


def _is_crd(resource: Resource) -> bool:
    return resource.group_kind == "CustomResourceDefinition.apiextensions.k8s.io"


def _definitions(resources: Sequence[Resource]) -> list[dict[str, object]]:
    return [{field.name: getattr(resource, field.name) for field in fields(Resource)} for resource in resources]
