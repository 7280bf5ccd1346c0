"""What all our pydantic types share: wire names, tolerance of unknown fields, and marks for the CRD generator.

Parse once at the door (``Machine.model_validate(obj)``) and patch with differences: a dump is never written back whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from pydantic.annotated_handlers import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

INITIALISMS: Final = frozenset({"id", "ip", "cidr", "uid", "dns", "api", "url", "ca", "os", "tls", "ssh", "cpu", "san"})
"""Words that Kubernetes writes in capitals, but for the first word of a name (API conventions, Naming)."""


def wire_name(python_name: str) -> str:
    """``provider_id`` → ``providerID``, ``cidr_blocks`` → ``cidrBlocks``, ``pod_cidrs`` → ``podCIDRs``."""
    first, *rest = python_name.strip("_").split("_")
    return first + "".join(_capitalised(word) for word in rest)


def _capitalised(word: str) -> str:
    if word in INITIALISMS:
        return word.upper()
    if word.endswith("s") and word[:-1] in INITIALISMS:
        return word[:-1].upper() + "s"
    return word.capitalize()


@dataclass(frozen=True, slots=True)
class Rule:
    """One ``x-kubernetes-validations`` entry: a CEL expression over ``self`` (and ``oldSelf``) that must hold.

    ``field_path`` (``.spec.x``, relative to the schema that carries the rule) says which field the message is about.
    ``optional_old_self`` makes ``oldSelf`` an optional and evaluates the rule on create as well.
    """

    rule: str
    message: str
    field_path: str = ""
    reason: str = "FieldValueInvalid"
    optional_old_self: bool = False

    def as_schema(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"rule": self.rule, "message": self.message, "reason": self.reason}
        if self.field_path:
            entry["fieldPath"] = self.field_path
        if self.optional_old_self:
            entry["optionalOldSelf"] = True
        return entry


def name_fits(limit: int, why: str) -> Rule:
    """Asked on create only, so that objects taken over from elsewhere can still be changed and deleted."""
    return Rule(
        f"oldSelf.hasValue() || !has(self.metadata.name) || size(self.metadata.name) <= {limit}",
        f"metadata.name may have at most {limit} characters: {why}",
        optional_old_self=True,
    )


@dataclass(frozen=True, slots=True)
class Schema:
    """A mark in ``Annotated[...]``: keywords that the CRD has and pydantic doesn't know, merged over pydantic's own."""

    keywords: dict[str, Any] = field(default_factory=dict, hash=False)
    rules: tuple[Rule, ...] = ()

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = {**handler(core_schema), **self.keywords}
        if self.rules:
            inner = schema.get("x-kubernetes-validations", [])
            schema["x-kubernetes-validations"] = [*inner, *(rule.as_schema() for rule in self.rules)]
        return schema


PRESERVE: Final = Schema({"x-kubernetes-preserve-unknown-fields": True})
"""Unknown fields at this level survive in the API server."""
ATOMIC_MAP: Final = Schema({"x-kubernetes-map-type": "atomic"})
"""Server-side apply owns the object as a whole."""
ATOMIC_LIST: Final = Schema({"x-kubernetes-list-type": "atomic"})
"""Server-side apply owns the list as a whole."""
SET: Final = Schema({"x-kubernetes-list-type": "set"})
"""A list of scalars without duplicates, owned item by item."""


def list_map(*keys: str) -> Schema:
    """A list whose items are identified by these fields; each item may have another owner (server-side apply)."""
    return Schema({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})


class Model(BaseModel):
    """Base of all types: frozen, camelCase on the wire, both names on input, unknown fields kept."""

    model_config = ConfigDict(
        alias_generator=wire_name,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        extra="allow",
        frozen=True,
        defer_build=True,
        use_attribute_docstrings=True,
    )

    __rules__: ClassVar[tuple[Rule, ...]] = ()
    """CEL rules of the object as a whole."""
    __preserve__: ClassVar[bool] = False
    """Unknown fields at this level survive in the API server (in Python they always do)."""
    __exclusive__: ClassVar[tuple[str, str] | None] = None
    """Wire names of two fields of which one may be given. Not a CEL rule: CEL can't see a field without a type."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        reference = handler(core_schema)
        schema = handler.resolve_ref_schema(reference)
        schema["additionalProperties"] = False
        if cls.__preserve__:
            schema["x-kubernetes-preserve-unknown-fields"] = True
        if cls.__exclusive__:
            schema["anyOf"] = _not_both(*cls.__exclusive__)
        if cls.__rules__:
            schema["x-kubernetes-validations"] = [rule.as_schema() for rule in cls.__rules__]
        return reference

    def wire(self) -> dict[str, Any]:
        """The object as it goes over the wire: JSON types, wire names, only what was set, unknown fields included."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _not_both(one: str, other: str) -> list[dict[str, Any]]:
    """Alternatives of which the first can't hold with ``other``: servers name the field that is wrong in it."""
    return [{"properties": {other: {"not": {}}}}, {"not": {"required": [one]}}]
