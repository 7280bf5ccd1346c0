"""What a list of bootstrap tokens tells: whose they are, and which have outlived their Machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from api import names
from controllers.bootstrap.credentials import token_of
from controllers.kernel.bootstrapping import DataPresent
from controllers.kernel.conditions import parse_time
from controllers.kernel.refs import SECRET, Obj, Ref, annotations_of, labels_of, ref_of

YOUNG = timedelta(seconds=60)
"""A token so young may belong to a Machine that has not been read yet."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """``alive``: what is there, by the UID of its Machine. ``orphans``: tokens whose Machine is gone."""

    alive: Mapping[str, DataPresent]
    orphans: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class Sweeper:
    """``machines``: UIDs of all Machines; None: they are not completely read. ``management_cluster``: mark of ours.
    ``namespace``: the only one whose Machines are known, "" for all.
    """

    machines: frozenset[str] | None
    management_cluster: str
    namespace: str
    now: datetime

    def sweep(self, tokens: Iterable[Obj]) -> Sweep:
        """Tokens of another management cluster, which may join hosts to the same cluster, are left alone."""
        alive: dict[str, DataPresent] = {}
        orphans = []
        for token in tokens:
            uid = labels_of(token).get(names.TOKEN_MACHINE_UID_LABEL, "")
            if token.get("type") != names.TOKEN_SECRET_TYPE or not uid:
                continue
            alive[uid] = token_of(token)
            if self._is_orphan(token, uid):
                orphans.append(ref_of(SECRET, token))
        return Sweep(alive, tuple(orphans))

    def _is_orphan(self, token: Obj, uid: str) -> bool:
        if self.machines is None or uid in self.machines or not self.management_cluster:
            return False
        if labels_of(token).get(names.TOKEN_MANAGED_BY_LABEL) != self.management_cluster:
            return False
        namespace = annotations_of(token).get(names.TOKEN_MACHINE_ANNOTATION, "").partition("/")[0]
        if self.namespace and namespace != self.namespace:
            return False
        made = parse_time(token["metadata"].get("creationTimestamp"))
        return made is not None and self.now - made >= YOUNG
