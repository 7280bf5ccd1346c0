"""The types in an OpenAPI document: those of the built-in kinds, and those that CustomResourceDefinitions bring."""

from __future__ import annotations

from typing import Any, Final

from nodewright.apiserver.openapi import builtins, descriptions
from nodewright.apiserver.values import Obj, Resource

STATUS: Final = "Status"
DELETE_OPTIONS: Final = "DeleteOptions"
SCALE: Final = "Scale"
EVICTION: Final = "Eviction"
TOKEN_REQUEST: Final = "TokenRequest"  # noqa: S105 - the name of a kind
ANY_TYPE: Final = "Patch"

_SHARED: Final = {
    STATUS: "meta.v1.Status",
    DELETE_OPTIONS: "meta.v1.DeleteOptions",
    SCALE: "autoscaling.v1.Scale",
    EVICTION: "policy.v1.Eviction",
    TOKEN_REQUEST: "authentication.v1.TokenRequest",
}
_META: Final = "meta.v1.ObjectMeta"
_LIST_META: Final = "meta.v1.ListMeta"
_PREFIXES: Final = {
    "meta.v1": "io.k8s.apimachinery.pkg.apis.meta.v1",
    "apiextensions.v1": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
}
_API_VERSION: Final = "Version of the schema of this object, written as group/version, or v1 for the core group."
_KIND: Final = "Kind of the object, in CamelCase, as clients name it."
_SCALARS: Final[dict[str, Obj]] = {
    "quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "intstr": {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
    "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "fieldsv1": {"type": "object"},
    "json": {},
    "extra": {"type": "array", "items": {"type": "string"}},
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
}


def built_in_name(name: str) -> str:
    """Give the name of a built-in type in documents: core.v1.Pod is io.k8s.api.core.v1.Pod."""
    module, _, kind = name.rpartition(".")
    return f"{_PREFIXES.get(module, f'io.k8s.api.{module}')}.{kind}"


def custom_name(group: str, version: str, kind: str) -> str:
    """Give the name of a custom kind in documents: the group's parts from the last to the first."""
    return ".".join([*reversed(group.split(".")), version, kind])


class Components:
    """Collects the types of one document; each type brings those that it uses."""

    def __init__(self) -> None:
        self._schemas: dict[str, Obj] = {}
        self._names: dict[str, str] = {}

    def add_kind(self, resource: Resource) -> None:
        """Add a kind and its list."""
        built_in = builtins.find(resource.group, resource.version, resource.kind)
        if built_in is not None and resource.builtin:
            name = self._add_built_in(built_in.name)
        else:
            name = custom_name(resource.group, resource.version, resource.kind)
            self._schemas[name] = self._custom(resource)
        gvk = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        self._schemas[name] = {**self._schemas[name], "x-kubernetes-group-version-kind": [gvk]}
        self._names[resource.kind] = name
        self._add_list(resource, name)

    def reference(self, name: str) -> Obj:
        """Give a reference to a kind of this document, or to one of the shared types."""
        if name == ANY_TYPE:
            return {"type": "object", "description": "A patch, as its media type says."}
        if name not in self._names:
            self._names[name] = self._add_built_in(_SHARED[name])
        return {"$ref": f"#/components/schemas/{self._names[name]}"}

    def finished(self) -> Obj:
        """Give all types in the order of their names."""
        return dict(sorted(self._schemas.items()))

    def _add_list(self, resource: Resource, item: str) -> None:
        name = item.removesuffix(resource.kind) + resource.list_kind
        gvk = {"group": resource.group, "version": resource.version, "kind": resource.list_kind}
        items = {"allOf": [{"$ref": f"#/components/schemas/{item}"}], "default": {}}
        self._schemas[name] = {
            "description": f"A list of {resource.kind} objects.",
            "type": "object",
            "required": ["items"],
            "properties": {
                **_type_meta(),
                "metadata": self._use(_LIST_META, "What the server says about the list itself."),
                "items": {"type": "array", "items": items, "description": "The objects."},
            },
            "x-kubernetes-group-version-kind": [gvk],
        }
        self._names[resource.list_kind] = name

    def _custom(self, resource: Resource) -> Obj:
        schema = resource.schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        metadata = self._use(_META, "Standard metadata of the object: name, labels, owners.")
        properties = {**(schema.get("properties") or {}), **_type_meta(), "metadata": metadata}
        return {**schema, "type": "object", "properties": properties}

    def _use(self, name: str, description: str) -> Obj:
        reference = f"#/components/schemas/{self._add_built_in(name)}"
        return {"allOf": [{"$ref": reference}], "default": {}, "description": description}

    def _add_built_in(self, name: str) -> str:
        shown = built_in_name(name)
        if shown not in self._schemas:
            self._schemas[shown] = {}  # a type may hold values of its own kind
            self._schemas[shown] = self._built_in_schema(name)
        return shown

    def _built_in_schema(self, name: str) -> Obj:
        kind = builtins.get(name)
        described = descriptions.of_fields(name)
        properties: Obj = _type_meta() if kind.group_version else {}
        for field in kind.fields.values():
            properties[field.name] = self._field(field, described.get(field.name, ""))
        schema: Obj = {"type": "object", "properties": properties}
        description = descriptions.of_type(name)
        if description:
            schema = {"description": description, **schema}
        required = [field.name for field in kind.fields.values() if field.required]
        if required:
            schema["required"] = required
        if kind.atomic:
            schema["x-kubernetes-map-type"] = "atomic"
        return schema

    def _field(self, field: builtins.Field, description: str) -> Obj:
        schema = self._type(field.type)
        if "$ref" in schema:
            schema = {"allOf": [schema], "default": {}}
        extra: Obj = {"description": description} if description else {}
        if field.default is not None:
            extra["default"] = field.default
        if field.enum:
            extra["enum"] = list(field.enum)
        if field.list_type and field.type.shape == "list":
            extra["x-kubernetes-list-type"] = field.list_type
        if field.list_map_keys:
            extra["x-kubernetes-list-map-keys"] = list(field.list_map_keys)
        if field.patch_strategies:
            extra["x-kubernetes-patch-strategy"] = ",".join(field.patch_strategies)
        if field.patch_merge_key:
            extra["x-kubernetes-patch-merge-key"] = field.patch_merge_key
        return {**schema, **extra}

    def _type(self, ref: builtins.TypeRef) -> Obj:
        if ref.shape == "scalar":
            return _SCALARS[ref.name]
        if ref.element is None:
            return {"$ref": f"#/components/schemas/{self._add_built_in(ref.name)}"}
        element: Any = self._type(ref.element)
        if ref.shape == "list":
            return {"type": "array", "items": element}
        return {"type": "object", "additionalProperties": element}


def _type_meta() -> Obj:
    return {
        "apiVersion": {"type": "string", "description": _API_VERSION},
        "kind": {"type": "string", "description": _KIND},
    }
