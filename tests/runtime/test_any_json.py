"""Objects with arbitrary JSON anywhere: no controller fails on another object's account, and no watch ends."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given

from controllers.kernel.node_policy import cluster_key_of
from controllers.kernel.reconciler import Reconciler
from controllers.kernel.refs import Key, Kind, is_deleting, key_of
from controllers.kernel.view import HostAbsent, HostPresent, HostReads, HostUnknown
from nodewright.runtime.cache.cache import Cache, CacheView
from nodewright.runtime.cache.indexes import INDEXES
from nodewright.runtime.cache.store import Change
from nodewright.runtime.fleet import collectors
from nodewright.runtime.fleet.lifetimes import Lifetimes
from nodewright.runtime.settings import wiring
from providers.base.contract import Host, HostState
from tests.builders import hostile
from tests.builders.clock import NOW
from tests.builders.view import KINDS
from tests.examples import usually

OBJECTS = hostile.world()
IDS = [f"{body['kind']} {body['metadata']['name']}" for body in OBJECTS]


class Always:
    complete = True
    current_for: float | None = float("inf")


def reconcilers() -> list[Reconciler[Any]]:
    """All controllers, those on request too."""
    return [*wiring.reconcilers(), *(make() for make in wiring.on_request().values())]


@dataclass
class Scene:
    """A cache of all kinds with the valid world in it."""

    cache: Cache = field(default_factory=lambda: Cache(KINDS.values()))

    def __post_init__(self) -> None:
        for kind in KINDS.values():
            self.cache.keep_complete(kind, Always())
            for name in INDEXES.get(kind, {}):
                self.cache.stores[kind].indexed(name, "")  # an index is kept from its first question on
            self.cache.listed(kind, [copy.deepcopy(o) for o in OBJECTS if o["kind"] == kind.name], "10")

    @property
    def view(self) -> CacheView:
        return self.cache.view(NOW + timedelta(hours=1))

    def shows(self, obj: dict[str, Any]) -> None:
        self.cache.watched(hostile.kind_of(obj), "MODIFIED", copy.deepcopy(obj))


def reads(reconciler: Reconciler[Any], key: Key) -> Iterator[HostReads | None]:
    """What may be known of hosts."""
    yield None
    if reconciler.kind.name in ("Machine", "MachineClass"):
        yield HostReads(HostAbsent())
        yield HostReads(HostUnknown("why"))
        uid = f"uid-{key.name}"
        yield HostReads(HostPresent(Host(uid, uid, key.name, f"simulated:///{uid}", HostState.RUNNING, "")))


def reconcile_all(reconciler: Reconciler[Any], scene: Scene, but: Key | None) -> None:
    """As the shell does, for each key there is; an object with a malformed spec is not reconciled unless it goes."""
    store, view = scene.cache.stores[reconciler.kind], scene.view
    keys = set(store.keys())
    own = getattr(reconciler, "key", None)
    for key in sorted({own} if own is not None else keys):
        body = store.get(key)
        if key == but or (body is not None and store.faults(key) and not is_deleting(body)):
            continue
        reconciler.needs(key, view)
        for hosts in reads(reconciler, key):
            observed = reconciler.observe(key, view, hosts)
            if observed is not None:
                reconciler.plan(observed)


def wake_all(reconciler: Reconciler[Any], scene: Scene, before: Any, after: Any, kind: Kind) -> None:
    for wake in reconciler.wakes:
        if wake.kind == kind:
            for old, new in ((before, after), (after, before)):
                if wake.ignores is not None:
                    wake.ignores(old, new)
                for key in wake.keys(new, scene.view):
                    if wake.gathers is not None:
                        wake.gathers(key, scene.view)


@pytest.mark.hypothesis
@pytest.mark.parametrize("number", range(len(OBJECTS)), ids=IDS)
def test_one_malformed_object_fails_nobodys_reconcile(number: int) -> None:
    original = OBJECTS[number]
    kind, key = hostile.kind_of(original), key_of(original)

    @usually(15)
    @given(hostile.changes(original))
    def holds(changed: dict[str, Any]) -> None:
        scene = Scene()
        before = scene.cache.stores[kind].get(key)
        lifetimes = Lifetimes(scene.cache, lambda: NOW)
        scene.shows(changed)
        after = scene.cache.stores[kind].get(key)
        assert after is not None, "an object with a name is always kept"
        cluster_key_of(kind, after)
        for name in INDEXES.get(kind, {}):
            scene.cache.stores[kind].indexed(name, "x")
        lifetimes.node_elsewhere(Key("default", "c"), _change(kind, key, before, after), False)
        list(collectors.families(collectors.Scene(scene.cache, {}, {}, NOW)))
        for reconciler in reconcilers():
            wake_all(reconciler, scene, before, after, kind)
            reconcile_all(reconciler, scene, None)

    holds()


def _change(kind: Kind, key: Key, old: Any, new: Any) -> Any:
    return Change(kind, key, old, new)
