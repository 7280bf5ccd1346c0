"""What watchers are told, from where, and when they are told to start again."""

from __future__ import annotations

import pytest

from nodewright.apiserver.store import StoreOptions
from nodewright.apiserver.store.watching import MAX_POLL
from nodewright.apiserver.values import ApiError
from tests.apiserver.store.cluster import Cluster, crd, seen


def test_a_watch_tells_each_change_once_and_in_order(cluster: Cluster) -> None:
    watch = cluster.watch("machines")
    cluster.machine("a")
    cluster.machine("b")
    cluster.merge("machines", "a", {"spec": {"replicas": 2}})
    cluster.delete("machines", "a")
    assert seen(watch) == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert seen(watch) == []


def test_events_carry_growing_resource_versions_that_the_objects_bear(cluster: Cluster) -> None:
    watch = cluster.watch("machines")
    cluster.machine("a")
    cluster.merge("machines", "a", {"spec": {"replicas": 2}})
    cluster.delete("machines", "a")
    events = watch.poll()
    revisions = [int(event.resource_version) for event in events]
    assert revisions == sorted(set(revisions))
    assert [event.object["metadata"]["resourceVersion"] for event in events] == [str(r) for r in revisions]
    assert events[-1].object["spec"]["replicas"] == 2


def test_a_watch_hears_of_its_own_namespace_only(cluster: Cluster) -> None:
    cluster.namespace("other")
    here, everywhere = cluster.watch("machines"), cluster.watch("machines", ns="")
    cluster.machine("a", ns="other")
    cluster.machine("b")
    assert seen(here) == [("ADDED", "b")]
    assert seen(everywhere) == [("ADDED", "a"), ("ADDED", "b")]


def test_a_watch_resumes_after_the_resource_version_it_knows(cluster: Cluster) -> None:
    known = cluster.machine("a")["metadata"]["resourceVersion"]
    cluster.machine("b")
    assert seen(cluster.watch("machines", resource_version=known)) == [("ADDED", "b")]


def test_an_object_that_comes_into_the_selection_is_added_and_one_that_leaves_deleted(cluster: Cluster) -> None:
    cluster.machine("a", meta={"labels": {"x": "1"}})
    watch = cluster.watch("machines", label_selector="x=1")
    cluster.merge("machines", "a", {"spec": {"replicas": 2}})
    cluster.merge("machines", "a", {"metadata": {"labels": {"x": "2"}}})
    cluster.merge("machines", "a", {"spec": {"replicas": 3}})
    cluster.merge("machines", "a", {"metadata": {"labels": {"x": "1"}}})
    events = watch.poll()
    assert [event.type for event in events] == ["MODIFIED", "DELETED", "ADDED"]
    left = events[1]
    assert left.object["metadata"]["labels"] == {"x": "1"}
    assert left.object["metadata"]["resourceVersion"] == left.resource_version


def test_field_selectors_work_on_watches_too(cluster: Cluster) -> None:
    watch = cluster.watch("pods", field_selector="spec.nodeName=node-1,status.phase=Running")
    cluster.pod("p")
    cluster.merge("pods", "p", {"status": {"phase": "Failed"}}, subresource="status")
    assert seen(watch) == [("ADDED", "p"), ("DELETED", "p")]


@pytest.mark.parametrize("revision", ["", "0"])
def test_a_watch_from_nowhere_starts_with_what_there_is(cluster: Cluster, revision: str) -> None:
    cluster.machine("b")
    cluster.machine("a")
    watch = cluster.watch("machines", resource_version=revision)
    cluster.machine("c")
    events = watch.poll() + watch.poll()
    assert [(e.type, e.object["metadata"]["name"]) for e in events] == [
        ("ADDED", "a"),
        ("ADDED", "b"),
        ("ADDED", "c"),
    ]


def test_initial_events_end_with_a_bookmark_if_they_were_asked_for(cluster: Cluster) -> None:
    cluster.machine("a")
    here = cluster.store.resource_version
    watch = cluster.watch("machines", resource_version="", send_initial_events=True)
    added, bookmark = watch.poll()
    assert (added.type, bookmark.type) == ("ADDED", "BOOKMARK")
    assert bookmark.resource_version == here
    assert bookmark.object["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    quiet = cluster.watch("machines", resource_version="", send_initial_events=False)
    assert quiet.poll() == []


def test_a_watch_that_asks_for_a_forgotten_past_is_expired() -> None:
    small = Cluster(options=StoreOptions(log_length=3)).with_machines()
    known = small.machine("a")["metadata"]["resourceVersion"]
    for replicas in range(2, 12):
        small.merge("machines", "a", {"spec": {"replicas": replicas}})
    with pytest.raises(ApiError) as caught:
        small.watch("machines", resource_version=known)
    assert (caught.value.code, caught.value.reason) == (410, "Expired")
    assert caught.value.message.startswith(f"too old resource version: {known} (")


def test_a_watch_that_falls_behind_is_expired_and_never_skips() -> None:
    small = Cluster(options=StoreOptions(log_length=3)).with_machines()
    watch = small.watch("machines")
    small.machine("a")
    for replicas in range(2, 12):
        small.merge("machines", "a", {"spec": {"replicas": replicas}})
    with pytest.raises(ApiError) as caught:
        watch.poll()
    assert caught.value.code == 410


def test_a_watch_of_the_future_times_out(cluster: Cluster) -> None:
    with pytest.raises(ApiError) as caught:
        cluster.watch("machines", resource_version="999999")
    assert caught.value.code == 504


def test_a_quiet_kind_can_be_watched_from_an_old_resource_version() -> None:
    small = Cluster(options=StoreOptions(log_length=3)).with_machines()
    known = small.store.resource_version
    for index in range(20):
        small.create("configmaps", {"metadata": {"name": f"c-{index}"}})
    assert small.watch("machines", resource_version=known).poll() == []


def test_polls_come_in_bounded_portions(cluster: Cluster) -> None:
    watch = cluster.watch("machines")
    cluster.machine("a")
    for replicas in range(2, MAX_POLL + 7):
        cluster.merge("machines", "a", {"spec": {"replicas": replicas}})
    assert (len(watch.poll()), watch.pending) == (MAX_POLL, True)
    assert (len(watch.poll()), watch.pending) == (6, False)


def test_a_watch_ends_with_its_kind(cluster: Cluster) -> None:
    woken: list[str] = []
    watch = cluster.watch("machines")
    cluster.machine("a")
    cluster.delete("customresourcedefinitions", "machines.cluster.example.com")
    cluster.store.on_change(woken.append)
    cluster.settle()
    assert watch.ended
    assert watch.group_resource in woken
    assert seen(watch) == [("ADDED", "a"), ("DELETED", "a")]
    fresh = cluster.create("customresourcedefinitions", crd(), ns="")
    assert not cluster.watch("machines").ended
    with pytest.raises(ApiError):
        cluster.watch("machines", resource_version=str(int(fresh["metadata"]["resourceVersion"]) - 5))


def test_listeners_are_called_after_each_commit_with_the_state_in_place(cluster: Cluster) -> None:
    found: list[tuple[str, list[str]]] = []
    cluster.store.on_change(lambda what: found.append((what, cluster.names("machines"))))
    cluster.machine("a")
    cluster.delete("machines", "a")
    assert found == [("machines.cluster.example.com", ["a"]), ("machines.cluster.example.com", [])]
