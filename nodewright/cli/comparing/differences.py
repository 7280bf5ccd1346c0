"""Two sets of declarations → what differs. Pure.

Objects are the same if kind, namespace and name are. Where each side has one namespace alone, that of the one is that
of the other; and where each side has one Cluster and these have different names, the one's name at the beginning of a
name (``prod``, ``prod-workers``) counts as the other's (``stage``, ``stage-workers``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from controllers.kernel.refs import CLUSTER
from nodewright.cli.comparing.declaration import Declaration
from nodewright.cli.manifests.positions import Path

_KEYS: Final = ("name", "key", "type", "address")
"""Fields by which items of a list are told apart, if each item has another value of it; else they are by position."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """In place of a value that one side does not have."""


NOTHING: Final = Nothing()


@dataclass(frozen=True, slots=True)
class Field:
    """``a`` and ``b``: JSON types, ``Hidden`` or ``NOTHING``."""

    path: Path
    a: Any
    b: Any


@dataclass(frozen=True, slots=True)
class Difference:
    """One object; ``a`` or ``b`` None: the other side alone has it. ``fields`` is empty then."""

    a: Declaration | None
    b: Declaration | None
    fields: tuple[Field, ...] = ()


def differences(a: Sequence[Declaration], b: Sequence[Declaration], *, pair: bool = False) -> list[Difference]:
    """``pair``: one object on each side, to be compared whatever their names are. In the order of ``a``, then ``b``."""
    names = _renaming(a, b)
    same = len({each.namespace for each in a}) <= 1 and len({each.namespace for each in b}) <= 1
    if pair:
        names = _Names(a[0].name, b[0].name)

    def identity(each: Declaration, *, ours: bool) -> tuple[str, ...]:
        name = names.in_b(each.name) if ours else each.name
        return each.group, each.kind, "" if same else each.namespace, name

    theirs = {identity(each, ours=False): each for each in b}
    found = []
    for each in a:
        other = theirs.pop(identity(each, ours=True), None)
        if other is None:
            found.append(Difference(each, None))
        elif fields := tuple(_fields(each.content, other.content, (), names)):
            found.append(Difference(each, other, fields))
    return found + [Difference(None, each) for each in theirs.values()]


@dataclass(frozen=True, slots=True)
class _Names:
    a: str = ""
    b: str = ""

    def in_b(self, text: str) -> str:
        if self.a and (text == self.a or text.startswith(f"{self.a}-")):
            return self.b + text[len(self.a) :]
        return text


def _renaming(a: Sequence[Declaration], b: Sequence[Declaration]) -> _Names:
    clusters = [
        [each.name for each in side if (each.group, each.kind) == (CLUSTER.group, CLUSTER.name)] for side in (a, b)
    ]
    return _Names(clusters[0][0], clusters[1][0]) if [len(each) for each in clusters] == [1, 1] else _Names()


def _fields(a: Any, b: Any, path: Path, names: _Names) -> Iterator[Field]:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for name in [*a, *(name for name in b if name not in a)]:
            yield from _fields(a.get(name, NOTHING), b.get(name, NOTHING), (*path, name), names)
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
        yield from _items(a, b, path, names)
    elif not _equal(a, b, names):
        yield Field(path, a, b)


def _items(a: Sequence[Any], b: Sequence[Any], path: Path, names: _Names) -> Iterator[Field]:
    key = next((each for each in _KEYS if _tells_apart(each, a) and _tells_apart(each, b)), None)
    if key is None:
        for at in range(max(len(a), len(b))):
            here, there = (side[at] if at < len(side) else NOTHING for side in (a, b))
            yield from _fields(here, there, (*path, at), names)
        return
    left = {names.in_b(each[key]): each for each in a}
    right = {each[key]: each for each in b}
    for name in [*left, *(name for name in right if name not in left)]:
        inner = _fields(left.get(name, NOTHING), right.get(name, NOTHING), (), names)
        yield from (replace(each, path=(*path, f"{key}={name}", *each.path)) for each in inner)


def _tells_apart(key: str, items: Sequence[Any]) -> bool:
    values = [each.get(key) if isinstance(each, Mapping) else None for each in items]
    return all(isinstance(value, str) for value in values) and len(set(values)) == len(values)


def _equal(a: Any, b: Any, names: _Names) -> bool:
    """``True`` is not 1, as in JSON."""
    if isinstance(a, str) and isinstance(b, str):
        return names.in_b(a) == b or a == b
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    return bool(a == b) or (_is_empty(a) and _is_empty(b))


def _is_empty(value: Any) -> bool:
    """What makes no difference to whoever reads the object: a field without a value, and none."""
    return value is None or value is NOTHING or value in ({}, [])
