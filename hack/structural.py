"""Turn a pydantic type into a structural schema as ``apiextensions.k8s.io/v1`` wants it.

Pydantic and Kubernetes disagree on: optional fields (absent, not null), ``const``, references (forbidden), titles,
exclusive bounds (a boolean in OpenAPI v3.0), and ``additionalProperties`` beside ``properties``. What can't be
expressed is an error that names its path, never silently dropped.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

Schema = dict[str, Any]

_KEPT = {
    "type", "format", "description", "default", "nullable", "enum", "pattern", "required", "properties", "items", "not",
    "additionalProperties", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties",
    "maxProperties", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string", "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "x-kubernetes-validations",
}  # fmt: skip
_VALIDATIONS = "x-kubernetes-validations"
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"


class UnstructuralError(Exception):
    """The type can't be said as a structural schema; the message starts with the path."""


class _Generator(GenerateJsonSchema):
    """Optional means absent, and a literal is an enum."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        return {"type": "string", "enum": list(schema["expected"])}

    def get_default_value(self, schema: core_schema.WithDefaultSchema) -> Any:
        """A default that is a type of ours becomes ``{}``: the server fills in what is nested."""
        default = super().get_default_value(schema)
        return {} if isinstance(default, BaseModel) else default


def structural(model: type[BaseModel]) -> Schema:
    """The schema of ``model``, inlined and checked. Raises UnstructuralError."""
    document = model.model_json_schema(by_alias=True, mode="validation", schema_generator=_Generator)
    definitions = document.pop("$defs", {})
    return _Inliner(definitions).convert(document, model.__name__, ())


class _Inliner:
    def __init__(self, definitions: dict[str, Schema]) -> None:
        self._definitions = definitions

    def convert(self, schema: Schema, path: str, seen: tuple[str, ...]) -> Schema:
        schema, seen = self._resolve(dict(schema), path, seen)
        schema.pop("title", None)
        if "description" in schema:  # `kubectl explain` shows it as it is
            schema["description"] = schema["description"].replace("``", "`")
        if schema.get("default", ...) is None:
            schema.pop("default")
        schema = _flatten_union(schema, path, lambda branch: self._resolve(dict(branch), path, seen)[0])
        _bounds(schema, path)
        if "properties" in schema:
            schema["properties"] = {
                name: self.convert(child, f"{path}.{name}", seen) for name, child in schema["properties"].items()
            }
        if isinstance(schema.get("items"), dict):
            schema["items"] = self.convert(schema["items"], f"{path}[]", seen)
        if isinstance(schema.get("additionalProperties"), dict):
            schema["additionalProperties"] = self.convert(schema["additionalProperties"], f"{path}{{}}", seen)
        else:
            schema.pop("additionalProperties", None)
        return _checked(schema, path)

    def _resolve(self, schema: Schema, path: str, seen: tuple[str, ...]) -> tuple[Schema, tuple[str, ...]]:
        while "$ref" in schema:
            name = schema.pop("$ref").rpartition("/")[2]
            if name in seen:
                raise UnstructuralError(f"{path}: {name} contains itself")
            seen = (*seen, name)
            target = self._definitions[name]
            rules = [*target.get(_VALIDATIONS, []), *schema.get(_VALIDATIONS, [])]
            schema = {**target, **schema}
            if rules:
                schema[_VALIDATIONS] = rules
        return schema, seen


def _flatten_union(schema: Schema, path: str, resolve: Any) -> Schema:
    """Unions exist in two forms only: int-or-string, and "a string or an object", which goes without a type.

    Beside a type ``anyOf`` is no union, but alternatives for the value.
    """
    if "anyOf" not in schema or "type" in schema:
        return schema
    branches = schema.pop("anyOf")
    types = {resolve(branch).get("type") for branch in branches}
    if schema.get(_INT_OR_STRING) and types == {"integer", "string"}:
        schema["anyOf"] = [{"type": "integer"}, {"type": "string"}]
        return schema
    if schema.get(_PRESERVE) and types == {"string", "object"}:
        inside = next(resolved for branch in branches if (resolved := resolve(branch)).get("type") == "object")
        if "properties" in inside:
            schema["properties"] = inside["properties"]
        return schema
    raise UnstructuralError(f"{path}: a union of {sorted(map(str, types))} can't be said in a CRD")


def _bounds(schema: Schema, path: str) -> None:
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(schema.get(exclusive), int | float):
            raise UnstructuralError(f"{path}: use {bound} in place of {exclusive}")


def _checked(schema: Schema, path: str) -> Schema:
    unknown = set(schema) - _KEPT - ({"anyOf"} if schema.get(_INT_OR_STRING) or "type" in schema else set())
    if unknown:
        raise UnstructuralError(f"{path}: keywords {sorted(unknown)} are not structural")
    if "type" not in schema and not schema.get(_INT_OR_STRING) and not schema.get(_PRESERVE):
        raise UnstructuralError(f"{path}: has no type")
    return schema
