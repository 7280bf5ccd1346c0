"""Which objects of one resource does a request select? Namespace, label selector and field selector together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nodewright.apiserver.store.collection import Key
from nodewright.apiserver.store.selectors import LabelMatch, field_value, label_match, parse_fields
from nodewright.apiserver.store.versions import stored_field
from nodewright.apiserver.values import ApiError, Obj, Resource

_NO_LABELS: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Selection:
    """The test for stored objects. `test` is None if all objects of the namespace are selected.

    `name` is the one name that a field selector on metadata.name asks for, "" if it doesn't.
    """

    namespace: str
    name: str
    test: Callable[[Obj], bool] | None

    def accepts(self, obj: Obj) -> bool:
        """Say whether a stored object of the right namespace is selected."""
        return self.test is None or self.test(obj)


def select(resource: Resource, namespace: str, labels: str, fields: str) -> Selection:
    """Make the test for two query-string selectors.

    Raises ApiError 400 for a selector that can't be parsed, or a field that this kind can't be selected by.
    """
    tests: list[Callable[[Obj], bool]] = []
    name = ""
    if not resource.namespaced:
        namespace = ""
    if (match := label_match(labels)) is not None:
        tests.append(_label_test(match))
    for requirement in parse_fields(fields):
        path = _selectable(resource, requirement.field)
        if requirement.field == "metadata.name" and requirement.equal:
            name = requirement.value
        tests.append(_field_test(path, requirement.value, requirement.equal))
    return Selection(namespace, name, _all_of(tests))


def _all_of(tests: list[Callable[[Obj], bool]]) -> Callable[[Obj], bool] | None:
    """Make one test of several; None of none."""
    if not tests:
        return None
    return tests[0] if len(tests) == 1 else lambda obj: all(test(obj) for test in tests)


def key_of(obj: Obj) -> Key:
    """Give an object's (namespace, name)."""
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _selectable(resource: Resource, field: str) -> tuple[str, ...]:
    if field not in ("metadata.name", "metadata.namespace") and field not in resource.selectable_fields:
        raise ApiError.bad_request(f"field label not supported: {field}")
    return stored_field(resource, tuple(field.split(".")))


def _label_test(match: LabelMatch) -> Callable[[Obj], bool]:
    return lambda obj: match(obj["metadata"].get("labels") or _NO_LABELS)


def _field_test(path: tuple[str, ...], value: str, equal: bool) -> Callable[[Obj], bool]:
    if path == ("spec", "unschedulable"):
        wanted = value == "true" if equal else value != "true"
        return lambda obj: bool(obj.get("spec", {}).get("unschedulable")) is wanted
    return lambda obj: (field_value(obj, path) == value) is equal
