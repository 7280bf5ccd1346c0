"""The store: the newer version stays, what is gone stays gone, and indexes say what the objects say."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.kernel import view
from controllers.kernel.refs import MACHINE, NODE, Key, key_of
from nodewright.runtime.cache.indexes import INDEXES
from nodewright.runtime.cache.slimming import LAST_APPLIED
from nodewright.runtime.cache.store import Change, Store
from tests.builders.objects import machine, machine_set
from tests.examples import usually

A = Key("default", "a")


def test_an_answer_that_comes_after_a_list_without_the_object_does_not_raise_the_dead() -> None:
    store = store_of(version=20)
    assert store.wrote(at(15)) == []


def at(version: int, name: str = "a", uid: str = "uid-a", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": spec}


def store_of(*objects: dict[str, Any], version: int = 10) -> Store:
    store = Store(MACHINE)
    store.replace(objects, str(version))
    return store


def _kinds_of(changes: list[Change]) -> list[str]:
    return ["ADDED" if c.old is None else "DELETED" if c.new is None else "MODIFIED" for c in changes]


def test_a_list_reports_what_it_no_longer_shows_as_deleted() -> None:
    store = store_of(at(5), at(6, "b", "uid-b"))
    changes = store.replace([at(5)], "20")
    assert [(c.key.name, c.new) for c in changes] == [("b", None)]


def test_a_list_reports_only_what_differs() -> None:
    store = store_of(at(5))
    assert store.replace([at(5)], "20") == []
    assert _kinds_of(store.replace([at(12)], "20")) == ["MODIFIED"]


def test_a_page_that_was_slimmed_ahead_is_as_good_as_one_that_was_not() -> None:
    store, other = store_of(at(5)), store_of(at(5))
    listed = [at(5), at(7, "b", "uid-b", taints="no list"), {"metadata": {"name": 3}}]
    ahead = store.admitted(copy.deepcopy(listed))
    assert store.replace(ahead, "20") == other.replace(listed, "20")
    assert store.faults(Key("default", "b")) == other.faults(Key("default", "b")) != ()


def test_an_object_that_was_replaced_by_a_namesake_is_reported_as_deleted_and_added() -> None:
    store = store_of(at(5))
    assert _kinds_of(store.replace([at(12, uid="other")], "20")) == ["DELETED", "ADDED"]
    assert store.by_uid("uid-a") is None
    assert store.by_uid("other") is store.get(A)


def test_an_own_write_is_seen_at_once_and_its_echo_changes_nothing() -> None:
    store = store_of(at(5))
    assert _kinds_of(store.wrote(at(11, x=1))) == ["MODIFIED"]
    assert store.watched("MODIFIED", at(11, x=1)) == []


def test_an_event_from_before_an_own_write_does_not_undo_it() -> None:
    store = store_of(at(5))
    store.wrote(at(12, x=2))
    assert store.watched("MODIFIED", at(11, x=1)) == []
    obj = store.get(A)
    assert obj is not None
    assert obj["spec"] == {"x": 2}


def test_an_answer_that_comes_after_a_newer_event_does_not_undo_it() -> None:
    store = store_of(at(5))
    store.watched("MODIFIED", at(12, x=2))
    assert store.wrote(at(11, x=1)) == []


def test_an_answer_that_comes_after_the_deletion_does_not_raise_the_dead() -> None:
    store = store_of(at(5))
    store.watched("DELETED", at(12))
    assert store.wrote(at(11)) == []
    assert store.watched("MODIFIED", at(11)) == []
    assert store.get(A) is None


def test_a_late_deletion_does_not_take_the_namesake_that_came_since() -> None:
    store = store_of(at(5))
    store.wrote(at(13, uid="new"))
    assert store.watched("DELETED", at(12)) == []
    assert store.by_uid("new") is not None


def test_a_list_that_is_older_than_an_own_write_does_not_undo_it() -> None:
    store = store_of()
    store.wrote(at(15))
    assert store.replace([], "12") == []
    assert store.get(A) is not None
    assert _kinds_of(store.replace([], "16")) == ["DELETED"]


def test_after_the_server_went_back_in_time_its_list_is_the_truth() -> None:
    store = store_of(at(50), version=60)
    store.wrote(at(70, x=1))
    assert _kinds_of(store.replace([at(7)], "9")) == ["MODIFIED"]
    assert _kinds_of(store.watched("MODIFIED", at(10))) == ["MODIFIED"]


def test_a_confirmed_delete_takes_only_the_object_that_was_meant() -> None:
    store = store_of(at(5, uid="new"))
    assert store.deleted(A, "old") == []
    assert _kinds_of(store.deleted(A, "new")) == ["DELETED"]


def test_what_no_room_reads_is_left_out() -> None:
    obj = at(5)
    obj["metadata"].update(managedFields=[{"manager": "kubectl"}], annotations={LAST_APPLIED: "{}", "mine": "1"})
    store = store_of(obj)
    kept = store.get(A)
    assert kept is not None
    assert "managedFields" not in kept["metadata"]
    assert kept["metadata"]["annotations"] == {"mine": "1"}


def test_machines_are_found_by_all_that_the_view_promises() -> None:
    owner = machine_set("ms").in_cluster("prod")
    obj = machine("m").of(owner).on_node("n-1").provider_id("sim://1").build()
    obj["spec"]["providerConfig"] = {"valueFrom": {"machineClass": {"name": "large"}}}
    store = store_of(obj)
    for index, value in {
        view.OWNER: "uid-ms",
        view.NAMESPACE: "default",
        view.PROVIDER_ID: "sim://1",
        view.NODE_NAME: "n-1",
        view.MACHINE_CLASS_REF: "default/large",
        view.CLUSTER_NAME: "default/prod",
    }.items():
        assert [key_of(found).name for found in store.indexed(index, value)] == ["m"], index


def test_orphans_are_found_under_the_empty_owner() -> None:
    store = store_of(machine("m").orphan().build())
    assert len(store.indexed(view.OWNER, "")) == 1


def test_an_index_forgets_the_value_that_an_object_had_before() -> None:
    store = store_of(at(5, providerID="old"))
    store.watched("MODIFIED", at(11, providerID="new"))
    assert store.indexed(view.PROVIDER_ID, "old") == []
    assert len(store.indexed(view.PROVIDER_ID, "new")) == 1
    store.watched("DELETED", at(12, providerID="new"))
    assert store.indexed(view.PROVIDER_ID, "new") == []
    assert store._filing.kept[view.PROVIDER_ID] == {}, "empty buckets must not pile up"


def test_an_index_is_made_when_it_is_first_asked_for_and_knows_what_was_there_before() -> None:
    """Nine of them for each Machine that changes cost more than all else the store does."""
    store = store_of(at(5, providerID="p"), at(6, "b", "uid-b", providerID="p"))
    assert store._filing.kept == {}
    assert [key_of(found).name for found in store.indexed(view.PROVIDER_ID, "p")] == ["a", "b"]
    assert store._filing.kept.keys() == {view.PROVIDER_ID}
    with pytest.raises(KeyError):
        store.indexed("colour", "green")


@pytest.mark.parametrize("spec", [{"providerID": 7}, {"providerConfig": "text"}, {"providerConfig": {"valueFrom": []}}])
def test_malformed_objects_are_kept_but_not_filed(spec: dict[str, Any]) -> None:
    store = store_of(at(5, **spec), {"metadata": {"name": "b", "labels": None}, "spec": None, "status": "?"})
    assert len(store) == 2
    for index in INDEXES[MACHINE]:
        assert store.indexed(index, "anything") == []


def test_a_node_is_found_by_its_provider_id() -> None:
    store = Store(NODE)
    store.replace([{"metadata": {"name": "n", "uid": "u"}, "spec": {"providerID": "p"}}], "5")
    assert [n["metadata"]["name"] for n in store.indexed(view.PROVIDER_ID, "p")] == ["n"]


_EVENTS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["put", "put", "delete"]), st.sampled_from(["", "x", "y"])),
    max_size=25,
)


@usually(40)
@given(history=_EVENTS, data=st.data())
def test_however_answers_events_and_lists_interleave_the_store_ends_as_the_server(
    history: list[tuple[str, str, str]], data: st.DataObject
) -> None:
    """Writes answered early or late, a relist in the middle: after the last event both sides are equal."""
    server: dict[str, dict[str, Any]] = {}
    log: list[tuple[str, dict[str, Any]]] = []
    snapshots: list[tuple[int, list[dict[str, Any]]]] = [(0, [])]
    for version, (name, what, provider_id) in enumerate(history, 1):
        if what == "put":
            known = server.get(name)
            uid = known["metadata"]["uid"] if known else f"{name}-{version}"
            obj = at(version, name, uid, providerID=provider_id)
            log.append(("MODIFIED" if known else "ADDED", obj))
            server[name] = obj
        elif name in server:
            log.append(("DELETED", at(version, name, server.pop(name)["metadata"]["uid"])))
        snapshots.append((version, list(server.values())))
    store = Store(MACHINE)
    position = data.draw(st.integers(0, len(history)), label="listed at")
    _feed_list(store, snapshots[position])
    for index in data.draw(st.sets(st.sampled_from(sorted(INDEXES[MACHINE]))), label="asked from the start"):
        store.indexed(index, "")
    answers = data.draw(st.permutations([obj for type_, obj in log if type_ != "DELETED"]), label="answers")
    for type_, obj in log:
        while answers and data.draw(st.booleans()):
            store.wrote(_copy(answers.pop()))
        version = int(obj["metadata"]["resourceVersion"])
        if version > position and data.draw(st.integers(0, 9)) == 0:
            position = data.draw(st.integers(version, len(history)), label="listed again at")
            _feed_list(store, snapshots[position])
        if version > position:
            store.watched(type_, _copy(obj))
    for obj in answers:
        store.wrote(_copy(obj))
    assert {key.name: store.get(key) for key in store.keys()} == server  # noqa: SIM118
    _check_indexes(store)


def _copy(obj: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "metadata": dict(obj["metadata"]), "spec": dict(obj["spec"])}


def _feed_list(store: Store, snapshot: tuple[int, list[dict[str, Any]]]) -> None:
    version, objects = snapshot
    store.replace([_copy(obj) for obj in objects], str(version))


def _check_indexes(store: Store) -> None:
    for name, indexer in INDEXES[MACHINE].items():
        store.indexed(name, "")
        filed = {(value, key) for value, bucket in store._filing.kept[name].items() for key in bucket}
        assert filed == {(indexer(obj), key_of(obj)) for obj in store if indexer(obj) is not None}, name
