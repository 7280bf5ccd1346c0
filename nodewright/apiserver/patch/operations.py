"""JSON patch (RFC 6902), with the leniencies of the real API server: `replace` of a missing key sets it, `copy` of a
missing key gives null, negative indices count from the end, and a `test` for null passes where there is nothing.

Our own rather than the `jsonpatch` package: objects in the store are frozen, so only the containers along the touched
paths may be copied, and every kind of bad input must end in the right Status.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from nodewright.apiserver.patch.merge import json_kind
from nodewright.apiserver.store.copying import check_size
from nodewright.apiserver.values import ApiError, Obj

MAX_OPERATIONS: Final = 10_000
MAX_COPIED: Final = 2_000_000
"""Elements of lists and maps that a patch may copy or shift before it is refused: it holds up everybody."""
MAX_SIZE: Final = 4 * 1024 * 1024
"""Values and characters of the object after the patch."""
_MISSING: Final = object()


class _CannotApplyError(Exception):
    """The operations are well formed but do not fit the object."""


def apply_json(current: Obj, operations: Any) -> Obj:
    """Give the object after all operations in their order.

    Raises ApiError: 400 if the patch is no list of objects, 413 if it is too long, 422 if an operation does not fit the
    object (a failed `test`, a missing path). All or nothing.
    """
    document = _Document(current, MAX_COPIED)
    for operation in _checked(operations):
        if not isinstance(operation, dict):
            raise _undecodable(operation, "handlers.jsonPatchOp")
        try:
            _apply_one(document, operation)
        except _CannotApplyError as error:
            text = "the server rejected our request due to an error in our request"
            raise ApiError(422, "Invalid", text, {}) from error
    check_size(document.root, MAX_SIZE)
    return document.root


def _checked(operations: Any) -> list[Any]:
    if not isinstance(operations, list):
        raise _undecodable(operations, "[]handlers.jsonPatchOp")
    if len(operations) > MAX_OPERATIONS:
        text = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise ApiError(413, "RequestEntityTooLarge", text)
    return operations


def _undecodable(value: Any, go_type: str) -> ApiError:
    text = f"error decoding patch: json: cannot unmarshal {json_kind(value)} into Go value of type {go_type}"
    return ApiError.bad_request(text)


def _apply_one(document: _Document, operation: Obj) -> None:
    handler = _HANDLERS.get(str(operation.get("op")))
    if handler is None:
        raise _CannotApplyError(f"unexpected kind: {operation.get('op')!r}")
    handler(document, operation)


def _add(document: _Document, operation: Obj) -> None:
    document.insert(_path(operation, "path"), operation.get("value"))


def _replace(document: _Document, operation: Obj) -> None:
    document.assign(_path(operation, "path"), operation.get("value"))


def _remove(document: _Document, operation: Obj) -> None:
    document.remove(_path(operation, "path"))


def _move(document: _Document, operation: Obj) -> None:
    value = document.remove(_path(operation, "from"))
    document.insert(_path(operation, "path"), value)


def _copy(document: _Document, operation: Obj) -> None:
    value = document.share(_path(operation, "from"))
    document.insert(_path(operation, "path"), None if value is _MISSING else value)


def _test(document: _Document, operation: Obj) -> None:
    value = document.get(_path(operation, "path"))
    found = None if value is _MISSING else value
    if not same_json(found, operation.get("value")):
        raise _CannotApplyError("test failed")


_HANDLERS: Final[Mapping[str, Callable[[_Document, Obj], None]]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def same_json(left: Any, right: Any) -> bool:
    """Tell whether two JSON values are equal, true and 1 being different (in Python they are not)."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_json(v, right[k]) for k, v in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right)


def _path(operation: Obj, key: str) -> list[str]:
    text = operation.get(key)
    if not isinstance(text, str) or "/" not in text:
        raise _CannotApplyError(f"{key} is missing or names the whole document")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


@dataclass(slots=True)
class _Document:
    """An object under edit. Containers are copied when first touched, so the original stays as it was.

    `budget` is how many elements may still be copied or shifted.
    """

    root: Obj
    budget: int
    _own: dict[int, Any] = field(default_factory=dict)
    """The copies that belong to this document alone, by id."""

    def share(self, path: list[str]) -> Any:
        """Give the value at a path for a second place: from now on it is changed by copying again."""
        self._own.clear()
        return self.get(path)

    def get(self, path: list[str]) -> Any:
        """Give the value at a path, or _MISSING if only its last step is missing."""
        here: Any = self.root
        for part in path[:-1]:
            here = _child(here, part)
            if not isinstance(here, (dict, list)):
                raise _CannotApplyError(f"missing path at {part!r}")
        return _child(here, path[-1])

    def insert(self, path: list[str], value: Any) -> None:
        parent = self._own_parent(path)
        if isinstance(parent, dict):
            parent[path[-1]] = value
        elif path[-1] == "-":
            parent.append(value)
        else:
            self._spend(len(parent) // 8)
            parent.insert(_index(path[-1], len(parent) + 1), value)

    def assign(self, path: list[str], value: Any) -> None:
        parent = self._own_parent(path)
        if isinstance(parent, dict):
            parent[path[-1]] = value
        else:
            parent[_index(path[-1], len(parent))] = value

    def remove(self, path: list[str]) -> Any:
        parent = self._own_parent(path)
        if isinstance(parent, list):
            self._spend(len(parent) // 8)
            return parent.pop(_index(path[-1], len(parent)))
        if path[-1] not in parent:
            raise _CannotApplyError(f"nothing to remove at {path[-1]!r}")
        return parent.pop(path[-1])

    def _own_parent(self, path: list[str]) -> Any:
        self.root = here = self._owned(self.root)
        for part in path[:-1]:
            child = _child(here, part)
            if not isinstance(child, (dict, list)):
                raise _CannotApplyError(f"missing path at {part!r}")
            own: Any = self._owned(child)
            if isinstance(here, dict):
                here[part] = own
            else:
                here[_index(part, len(here))] = own
            here = own
        return here

    def _owned(self, container: Any) -> Any:
        """Give a container that may be changed: itself if it was copied before, else a copy."""
        if id(container) in self._own:
            return container
        self._spend(len(container))
        own = container.copy()
        self._own[id(own)] = own
        return own

    def _spend(self, elements: int) -> None:
        self.budget -= elements
        if self.budget < 0:
            text = f"Request entity too large: the JSON patch copies more than {MAX_COPIED} elements"
            raise ApiError(413, "RequestEntityTooLarge", text)


def _child(container: Any, part: str) -> Any:
    if isinstance(container, dict):
        return container.get(part, _MISSING)
    return container[_index(part, len(container))]


def _index(part: str, length: int) -> int:
    try:
        index = int(part)
    except ValueError as error:
        raise _CannotApplyError(f"{part!r} is no index") from error
    if not -length <= index < length:
        raise _CannotApplyError(f"index {index} is out of range")
    return index + length if index < 0 else index
