"""The objects of one store by the indexes of their kind. An index is made at its first question and kept from then on.

A process that runs one reconciler asks for one or two of nine, and each object that changes is filed under all that are
kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import structlog

from controllers.kernel.refs import Key, Obj, key_of
from nodewright.runtime.cache.indexes import Indexer
from nodewright.runtime.telemetry import metrics

_log = structlog.get_logger("nodewright.cache")

Index = dict[str, dict[Key, Obj]]
"""Objects by value and key; no value without objects."""


class Filing:
    """``objects``: all there are, as the store keeps them."""

    def __init__(self, indexers: Mapping[str, Indexer], objects: Mapping[Key, Obj]) -> None:
        self._indexers = dict(indexers)
        self._objects = objects
        self.kept: dict[str, Index] = {}

    def under(self, index: str, value: str) -> Sequence[Obj]:
        """Raises KeyError for an index that this kind does not have."""
        found = self.kept.get(index)
        if found is None:
            found = self.kept[index] = self._made(index)
        bucket = found.get(value)
        return list(bucket.values()) if bucket else []

    def put(self, key: Key, old: Obj | None, new: Obj) -> None:
        """``new`` took the place of ``old``, or is new."""
        for name, index in self.kept.items():
            indexer = self._indexers[name]
            before = _filed(name, indexer, old) if old is not None else None
            value = _filed(name, indexer, new)
            if before is not None and before != value:
                _take_out(index, before, key)
            if value is not None:
                index.setdefault(value, {})[key] = new

    def drop(self, key: Key, old: Obj) -> None:
        for name, index in self.kept.items():
            value = _filed(name, self._indexers[name], old)
            if value is not None:
                _take_out(index, value, key)

    def _made(self, name: str) -> Index:
        indexer, index = self._indexers[name], Index()
        for key, obj in self._objects.items():
            value = _filed(name, indexer, obj)
            if value is not None:
                index.setdefault(value, {})[key] = obj
        return index


def _filed(name: str, indexer: Indexer, obj: Obj) -> str | None:
    """The value; None if the function fails. One object must not end the watch that all others come by."""
    try:
        return indexer(obj)
    except Exception:
        metrics.of(metrics.RECONCILER_ERRORS, "cache").inc()
        _log.exception("index failed", index=name, object=str(key_of(obj)))
        return None


def _take_out(index: Index, value: str, key: Key) -> None:
    bucket = index.get(value)
    if bucket is not None:
        bucket.pop(key, None)
        if not bucket:
            del index[value]
