"""A compiled structural schema: prune, default and validate the objects of one kind."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import orjson

from nodewright.apiserver.openapi.builtins import NULLS_ARE_ABSENT
from nodewright.apiserver.validation import nodes, pruning
from nodewright.apiserver.validation.embedded import embedded_faults
from nodewright.apiserver.validation.faults import BLOCKING, find_faults
from nodewright.apiserver.validation.keyed_lists import duplicates
from nodewright.apiserver.validation.patterns import compile_pattern
from nodewright.apiserver.validation.rules import NOT_CHECKED, Rules
from nodewright.apiserver.validation.verdict import compile_verdict
from nodewright.apiserver.values import Cause, Obj

_REMEMBERED = 128


class Compiled:
    """What `compile_schema` gives. Every method leaves its arguments alone and shares what it does not change."""

    def __init__(self, schema: Obj) -> None:
        self._root = nodes.read(schema)
        _check_patterns(schema)
        self._rules = Rules(self._root)
        self._is_fine = compile_verdict(self._root)

    def prune(self, obj: Obj) -> tuple[Obj, list[str]]:
        """Give the object without fields that the schema does not know, and their sorted paths ("spec.ports[0].x")."""
        if self._is_fine(obj):
            return obj, []
        return pruning.prune(self._root, obj)

    def default(self, obj: Obj) -> Obj:
        """Give the object with defaults filled in; nulls of fields that are not nullable count as missing."""
        present = obj if self._is_fine(obj) else nodes.without_nulls(self._root, obj)
        filled: Obj = nodes.fill(self._root, present) if self._root.has_defaults else present
        return filled

    def validate(self, obj: Obj, old: Obj | None = None) -> list[Cause]:
        """Say all that is wrong, in the words of the real server; `old` is the object before an update.

        Rules are not evaluated on an object whose types are wrong: then the last cause says so.
        """
        causes = [] if self._is_fine(obj) else self._faults(obj, old)
        if self._root.has_embedded:
            causes += embedded_faults(self._root, obj)
        if self._root.has_keyed_lists:
            causes += duplicates(self._root, obj)
        if not self._root.has_rules:
            return causes
        if any(cause.reason in BLOCKING for cause in causes):
            return [*causes, NOT_CHECKED]
        return causes + self._rules.check(obj, old)

    def _faults(self, obj: Obj, old: Obj | None) -> list[Cause]:
        stated = nodes.without_nulls(self._root, obj) if NULLS_ARE_ABSENT in self._root.raw else obj
        return find_faults(self._root, stated, old)


def compile_schema(schema: Obj) -> Compiled:
    """Compile a structural schema of a whole object (`openAPIV3Schema`).

    Equal schemas share one compiled form: a process that makes many stores (a simulation, tests) compiles once. Raises
    ValueError, naming the place, for what is no schema and for rules or patterns that cannot be compiled.
    """
    try:
        packed = orjson.dumps(schema)
    except orjson.JSONEncodeError:  # nested too deeply, or no JSON: the reader says where
        return Compiled(schema)
    return _compiled(packed)


@lru_cache(maxsize=_REMEMBERED)
def _compiled(packed: bytes) -> Compiled:
    return Compiled(orjson.loads(packed))


def _check_patterns(raw: Any) -> None:
    if isinstance(raw, dict):
        pattern = raw.get("pattern")
        if isinstance(pattern, str):
            compile_pattern(pattern)
        for value in raw.values():
            _check_patterns(value)
    elif isinstance(raw, list):
        for value in raw:
            _check_patterns(value)
