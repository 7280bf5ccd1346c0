"""What a move remembers of itself: one Secret in both management clusters, written before what it tells of is done."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from controllers.kernel.refs import SECRET, Key, Kind, Obj, Ref, key_of, mapping
from nodewright.cli.moving.graph import KINDS, Item

SECRET_TYPE = "nodewright.dev/move"  # noqa: S105  (a type, no secret)
_SUFFIX = "-nodewright-move"
_FIELD = "move"
_KINDS: Mapping[str, Kind] = {kind.name: kind for kind in KINDS}


class Phase(StrEnum):
    PREPARE = "Prepare"
    """The source is marked and copies are made; all of it can be taken back."""
    COMMITTED = "Committed"
    """The copies are what counts: hosts are handed over, then the source's objects go. It leads forward only."""
    DONE = "Done"
    """Nothing is left but this record."""


class DamagedJournalError(ValueError):
    """The Secret is there and can't be understood."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One object: its UID at the source and, once the move is committed, at the target."""

    kind: str
    name: str
    uid: str
    new_uid: str = ""
    shared: bool = False

    def ref(self, namespace: str, *, at_target: bool) -> Ref:
        return Ref(_KINDS[self.kind], Key(namespace, self.name), self.new_uid if at_target else self.uid)


@dataclass(frozen=True, slots=True)
class Journal:
    """``source`` and ``target``: marks of the management clusters. ``entries``: owners first; () before the commit."""

    id: str
    cluster: Key
    source: str
    target: str
    phase: Phase = Phase.PREPARE
    entries: tuple[Entry, ...] = field(default=())

    @property
    def uids(self) -> dict[str, str]:
        """UID at the source to UID at the target, the management clusters' own marks among them."""
        return {entry.uid: entry.new_uid for entry in self.entries if entry.new_uid} | {self.source: self.target}

    def committed(self, items: list[Item], uids: Mapping[str, str]) -> Journal:
        entries = tuple(
            Entry(item.kind.name, str(item.obj["metadata"]["name"]), uid, uids.get(uid, ""), item.shared)
            for item in items
            for uid in [str(item.obj["metadata"]["uid"])]
        )
        return replace(self, phase=Phase.COMMITTED, entries=entries)

    def done(self) -> Journal:
        return replace(self, phase=Phase.DONE)

    def data(self) -> dict[str, str]:
        return {_FIELD: base64.b64encode(json.dumps(asdict(self)).encode()).decode()}

    def body(self) -> dict[str, Any]:
        key = key_of_journal(self.cluster)
        metadata = {"namespace": key.namespace, "name": key.name}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": SECRET_TYPE, "data": self.data()}


def key_of_journal(cluster: Key) -> Key:
    return Key(cluster.namespace, f"{cluster.name}{_SUFFIX}")


def clusters_of(secrets: Iterable[Obj]) -> list[Key]:
    """Clusters of which a move has left a record among ``secrets``."""
    found = []
    for secret in secrets:
        key = key_of(secret)
        if secret.get("type") == SECRET_TYPE and key.name.endswith(_SUFFIX):
            found.append(Key(key.namespace, key.name.removesuffix(_SUFFIX)))
    return found


def read(secret: Obj) -> Journal:
    """Raises DamagedJournalError."""
    try:
        found = json.loads(base64.b64decode(str(mapping(secret.get("data"))[_FIELD]), validate=True))
        entries = tuple(Entry(**each) for each in found.pop("entries"))
        if any(entry.kind not in _KINDS for entry in entries):
            raise DamagedJournalError("it names a kind that does not move")
        phase, cluster = Phase(found.pop("phase")), Key(**found.pop("cluster"))
        return Journal(**found, cluster=cluster, phase=phase, entries=entries)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        name = mapping(secret.get("metadata")).get("name")
        raise DamagedJournalError(f"{SECRET.name} {name} is no record of a move: {error}") from error
