"""How does a body become an object of its kind? Unknown fields out, defaults in, then validation."""

from __future__ import annotations

from collections.abc import Iterable

from api import misspelt, names
from nodewright.apiserver.store.seams import Seams, Shape
from nodewright.apiserver.values import ApiError, Cause, Obj, Resource


class Shapes:
    """The compiled schemas of the served resources, compiled once each."""

    def __init__(self, seams: Seams) -> None:
        self._seams = seams
        self._shapes: dict[Resource, Shape | None] = {}
        self._levels: dict[Resource, tuple[misspelt.Level, ...]] = {}

    def of(self, resource: Resource) -> Shape | None:
        """Give the compiled schema, or None if the kind has none and anything goes."""
        try:
            return self._shapes[resource]
        except KeyError:
            shape = self._shapes[resource] = self._seams.shape_of(resource)
            return shape

    def retain(self, resources: Iterable[Resource]) -> None:
        """Forget all but these."""
        kept = set(resources)
        self._shapes = {resource: shape for resource, shape in self._shapes.items() if resource in kept}
        self._levels = {resource: levels for resource, levels in self._levels.items() if resource in kept}

    def fit(self, resource: Resource, body: Obj, field_validation: str) -> tuple[Obj, tuple[str, ...]]:
        """Prune and default a body; gives the warnings about unknown fields with it.

        Raises ApiError 400 for unknown fields if `field_validation` is Strict.
        """
        known, warnings = self.known(resource, body, field_validation)
        shape = self.of(resource)
        return (known if shape is None else shape.default(known)), warnings

    def known(self, resource: Resource, body: Obj, field_validation: str) -> tuple[Obj, tuple[str, ...]]:
        """Prune a body without filling in defaults: what an apply owns is what it states. Otherwise as `fit`."""
        if field_validation not in ("", "Warn", "Strict", "Ignore"):
            raise _unknown_validation(field_validation)
        shape = self.of(resource)
        if shape is None:
            return body, ()
        if resource.builtin:
            _refuse_wrong_types(resource, shape.validate(body, None))
        pruned, paths = shape.prune(body)
        warnings: tuple[str, ...] = ()
        if paths and field_validation != "Ignore":
            texts = [f'unknown field "{path}"' for path in paths]
            if field_validation == "Strict":
                raise _strict(resource, texts)
            warnings = tuple(texts)
        if field_validation != "Ignore":
            warnings += self._misspelt(resource, pruned)
        return pruned, warnings

    def _misspelt(self, resource: Resource, body: Obj) -> tuple[str, ...]:
        """Warnings about fields of our own kinds that survive unknown and look like a known one.

        Elsewhere a ValidatingAdmissionPolicy of `deploy/components/unknown-fields` warns of them.
        """
        if resource.group != names.GROUP or resource.schema is None:
            return ()
        levels = self._levels.get(resource)
        if levels is None:
            levels = self._levels[resource] = tuple(misspelt.levels(resource.schema))
        return tuple(map(str, misspelt.near_misses(body, levels)))

    def faults(self, resource: Resource, obj: Obj, old: Obj | None) -> list[Cause]:
        """Say what the schema and its rules hold against an object of a custom kind.

        The schemas of the built-in kinds only know types; what else must hold for them is in `builtin_rules`.
        """
        shape = self.of(resource) if not resource.builtin else None
        return shape.validate(obj, old) if shape is not None else []


def _refuse_wrong_types(resource: Resource, causes: list[Cause]) -> None:
    """Answer as a decoder of typed objects: 400 for a type, and nothing for what only validation can know."""
    for cause in causes:
        if cause.reason == "FieldValueTypeInvalid":
            kind = resource.kind
            raise ApiError.bad_request(
                f'{kind} in version "{resource.version}" cannot be handled as a {kind}: '
                f"json: cannot unmarshal field {kind}.{cause.field}: {cause.message}"
            )


def _strict(resource: Resource, texts: list[str]) -> ApiError:
    kind, version = resource.kind, resource.version
    text = f"strict decoding error: {', '.join(texts)}"
    return ApiError.bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {text}')


def _unknown_validation(value: str) -> ApiError:
    message = f'Unsupported value: "{value}": supported values: "", "Ignore", "Strict", "Warn"'
    cause = Cause("fieldValidation", "FieldValueNotSupported", message)
    return ApiError.invalid("CreateOptions.meta.k8s.io", "", [cause])
