"""Whatever happens, replaying a watch's events over the list it started from gives the list there is now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from nodewright.apiserver.store import StoreOptions, Watch
from nodewright.apiserver.values import ApiError, DeleteOptions, ListOptions, Obj, WatchEvent
from tests.apiserver.store.cluster import Cluster, owned_by
from tests.examples import usually

NAMES = ("a", "b", "c", "d")
SPACES = ("default", "other")
SELECTORS = ("", "tier=web", "tier!=web", "tier in (web,db)", "!tier")
FIELDS = ("", "metadata.name=a", "metadata.name!=a")


@dataclass
class Follower:
    """A client that lists once and then only watches."""

    where: str
    labels: str
    fields: str
    watch: Watch
    known: dict[tuple[str, str], Obj]


def outcome(act: Callable[..., Any], *args: Any, **options: Any) -> int:
    """The HTTP status that an action would be answered with."""
    try:
        act(*args, **options)
    except ApiError as error:
        return error.code
    return 200


def key(obj: Obj) -> tuple[str, str]:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


class Machines(RuleBasedStateMachine):
    followers = Bundle("followers")
    snapshots = Bundle("snapshots")

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster(options=StoreOptions(log_length=20)).with_machines()
        self.cluster.namespace("other")

    @rule(where=st.sampled_from(SPACES), name=st.sampled_from(NAMES), tier=st.sampled_from(("web", "db", None)))
    def create(self, where: str, name: str, tier: str | None) -> None:
        labels = {} if tier is None else {"labels": {"tier": tier}}
        self.attempt(self.cluster.machine, name, where, meta=labels)

    @rule(where=st.sampled_from(SPACES), name=st.sampled_from(NAMES), owner=st.sampled_from(NAMES), block=st.booleans())
    def create_owned(self, where: str, name: str, owner: str, block: bool) -> None:
        if self.cluster.has("machines", owner, where):
            found = self.cluster.get("machines", owner, where)
            references = {"ownerReferences": owned_by(found, block=block), "finalizers": ["a.b/c"]}
            self.attempt(self.cluster.machine, name, where, meta=references)

    @rule(where=st.sampled_from(SPACES), name=st.sampled_from(NAMES), tier=st.sampled_from(("web", "db", None)))
    def relabel(self, where: str, name: str, tier: str | None) -> None:
        self.attempt(self.cluster.merge, "machines", name, {"metadata": {"labels": {"tier": tier}}}, where)

    @rule(where=st.sampled_from(SPACES), name=st.sampled_from(NAMES), replicas=st.integers(0, 3))
    def change(self, where: str, name: str, replicas: int) -> None:
        self.attempt(self.cluster.merge, "machines", name, {"spec": {"replicas": replicas}}, where)

    @rule(where=st.sampled_from(SPACES), name=st.sampled_from(NAMES))
    def release(self, where: str, name: str) -> None:
        self.attempt(self.cluster.merge, "machines", name, {"metadata": {"finalizers": None}}, where)

    @rule(
        where=st.sampled_from(SPACES),
        name=st.sampled_from(NAMES),
        how=st.sampled_from(("", "Background", "Foreground", "Orphan")),
    )
    def delete(self, where: str, name: str, how: str) -> None:
        self.attempt(self.cluster.delete, "machines", name, where, propagation=how)

    @rule(where=st.sampled_from((*SPACES, "")), labels=st.sampled_from(SELECTORS))
    def delete_many(self, where: str, labels: str) -> None:
        self.cluster.store.delete_collection(
            self.cluster.res("machines"), where, ListOptions(label_selector=labels), DeleteOptions()
        )

    @rule(steps=st.integers(1, 5))
    def collect(self, steps: int) -> None:
        self.cluster.store.run_gc(steps)

    @rule(
        target=followers,
        where=st.sampled_from((*SPACES, "")),
        labels=st.sampled_from(SELECTORS),
        fields=st.sampled_from(FIELDS),
    )
    def follow(self, where: str, labels: str, fields: str) -> Follower:
        options: dict[str, Any] = {"label_selector": labels, "field_selector": fields}
        result = self.cluster.store.list(self.cluster.res("machines"), where, ListOptions(**options))
        watch = self.cluster.watch("machines", where, resource_version=result.resource_version, **options)
        return Follower(where, labels, fields, watch, {key(item): item for item in result.items})

    @rule(follower=followers)
    def catch_up(self, follower: Follower) -> None:
        events = self.poll(follower)
        if events is None:
            follower.watch = self.cluster.watch(
                "machines",
                follower.where,
                resource_version="",
                label_selector=follower.labels,
                field_selector=follower.fields,
            )
            follower.known = {}
            events = follower.watch.poll()
        for event in events:
            place = key(event.object)
            assert (place in follower.known) is (event.type != "ADDED"), (event.type, place)
            if event.type == "DELETED":
                del follower.known[place]
            else:
                follower.known[place] = event.object
        now = self.cluster.store.list(
            self.cluster.res("machines"),
            follower.where,
            ListOptions(label_selector=follower.labels, field_selector=follower.fields),
        )
        assert sorted(follower.known) == [key(item) for item in now.items]
        assert [follower.known[key(item)] for item in now.items] == now.items

    @rule(target=snapshots, where=st.sampled_from((*SPACES, "")))
    def remember(self, where: str) -> tuple[str, str, list[Obj], str]:
        resource = self.cluster.res("machines")
        whole = self.cluster.store.list(resource, where).items
        first = self.cluster.store.list(resource, where, ListOptions(limit=1))
        return where, first.resource_version, whole, first.continue_

    @rule(snapshot=consumes(snapshots))
    def page_on(self, snapshot: tuple[str, str, list[Obj], str]) -> None:
        where, revision, whole, token = snapshot
        log = self.cluster.store._state.collection("machines.cluster.example.com").log
        resource = self.cluster.res("machines")
        past = ListOptions(resource_version=revision, resource_version_match="Exact")
        if int(revision) < log.floor:
            assert outcome(self.cluster.store.list, resource, where, past) == 410
            return
        assert self.cluster.store.list(resource, where, past).items == whole
        pages = whole[:1]
        while token:
            page = self.cluster.store.list(resource, where, ListOptions(limit=2, continue_=token))
            pages += page.items
            token = page.continue_
        assert pages == whole

    @invariant()
    def indexes_hold_what_the_objects_say(self) -> None:
        state = self.cluster.store._state
        objects = [obj for collection in state.collections() for obj in collection.scan("")]
        assert set(state.by_uid) == {obj["metadata"]["uid"] for obj in objects}
        wanted: dict[str, set[str]] = {}
        for obj in objects:
            for reference in obj["metadata"].get("ownerReferences") or ():
                wanted.setdefault(reference["uid"], set()).add(obj["metadata"]["uid"])
        found = {
            uid: {state.find(place)["metadata"]["uid"] for place in places}  # type: ignore[index]
            for uid, places in state.dependents.items()
        }
        assert found == wanted

    def teardown(self) -> None:
        """Let all go: nothing may be left that waits for something that is gone."""
        while self.cluster.store.run_gc():
            pass
        for obj in self.cluster.store.list(self.cluster.res("machines"), "").items:
            where, name = key(obj)
            if obj["metadata"].get("finalizers") == ["a.b/c"] and obj["metadata"].get("deletionTimestamp"):
                self.attempt(self.cluster.merge, "machines", name, {"metadata": {"finalizers": None}}, where)
        self.cluster.settle()
        left = self.cluster.store.list(self.cluster.res("machines"), "").items
        for obj in left:
            finalizers = obj["metadata"].get("finalizers") or []
            deleting = obj["metadata"].get("deletionTimestamp")
            assert not (deleting and finalizers and finalizers != ["a.b/c"] and not self.is_waited_for(obj)), obj
        present = {obj["metadata"]["uid"] for obj in left}
        for obj in left:
            references = obj["metadata"].get("ownerReferences") or []
            if references and not obj["metadata"].get("deletionTimestamp"):
                assert any(reference["uid"] in present for reference in references), obj

    def poll(self, follower: Follower) -> list[WatchEvent] | None:
        """The events since the last poll, or None if the follower has to list again."""
        try:
            return follower.watch.poll()
        except ApiError as error:
            if error.code != 410:
                raise
            return None

    def is_waited_for(self, owner: Obj) -> bool:
        """Say whether a deleting owner still has a dependent that blocks it."""
        everything = self.cluster.store.list(self.cluster.res("machines"), "").items
        return any(
            reference["uid"] == owner["metadata"]["uid"] and reference.get("blockOwnerDeletion")
            for obj in everything
            for reference in obj["metadata"].get("ownerReferences") or ()
        )

    def attempt(self, act: Callable[..., Any], *args: Any, **options: Any) -> None:
        assert outcome(act, *args, **options) in (200, 404, 409)


Machines.TestCase.settings = settings(usually(20), stateful_step_count=40)
TestMachines = Machines.TestCase
