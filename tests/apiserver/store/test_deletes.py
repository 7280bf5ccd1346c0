"""How objects go: finalizers, preconditions, grace periods, and their dependents with them."""

from __future__ import annotations

import pytest

from nodewright.apiserver.store import StoreOptions
from nodewright.apiserver.values import ApiError, DeleteOptions, ListOptions
from tests.apiserver.store.cluster import Cluster, owned_by, seen

FINALIZER = "example.com/host"


class TestDelete:
    def test_removes_at_once_and_says_so(self, cluster: Cluster) -> None:
        uid = cluster.machine("m")["metadata"]["uid"]
        answer = cluster.delete("machines", "m")
        assert answer["status"] == "Success"
        assert answer["details"] == {"name": "m", "group": "cluster.example.com", "kind": "machines", "uid": uid}
        assert not cluster.has("machines", "m")

    def test_of_a_pod_answers_with_the_pod(self, cluster: Cluster) -> None:
        cluster.pod("p")
        assert cluster.delete("pods", "p")["kind"] == "Pod"
        assert not cluster.has("pods", "p")

    def test_of_what_is_not_there_is_not_found(self, cluster: Cluster) -> None:
        with pytest.raises(ApiError) as caught:
            cluster.delete("machines", "m")
        assert caught.value.code == 404

    def test_waits_for_finalizers(self, cluster: Cluster) -> None:
        cluster.machine("m", meta={"finalizers": [FINALIZER]})
        watch = cluster.watch("machines")
        marked = cluster.delete("machines", "m")
        assert marked["metadata"]["deletionTimestamp"] == "2030-01-02T03:04:05Z"
        assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
        assert marked["metadata"]["generation"] == 2
        cluster.merge("machines", "m", {"metadata": {"finalizers": None}})
        assert not cluster.has("machines", "m")
        assert seen(watch) == [("MODIFIED", "m"), ("DELETED", "m")]

    def test_keeps_the_name_until_the_object_is_gone(self, cluster: Cluster) -> None:
        cluster.machine("m", meta={"finalizers": [FINALIZER]})
        cluster.delete("machines", "m")
        with pytest.raises(ApiError) as caught:
            cluster.machine("m")
        assert caught.value.message == ('object is being deleted: machines.cluster.example.com "m" already exists')

    def test_again_changes_nothing(self, cluster: Cluster) -> None:
        cluster.machine("m", meta={"finalizers": [FINALIZER]})
        marked = cluster.delete("machines", "m")
        cluster.passes(seconds=9)
        assert cluster.delete("machines", "m") == marked

    def test_lets_no_new_finalizer_in(self, cluster: Cluster) -> None:
        cluster.machine("m", meta={"finalizers": [FINALIZER]})
        cluster.delete("machines", "m")
        with pytest.raises(ApiError) as caught:
            cluster.merge("machines", "m", {"metadata": {"finalizers": [FINALIZER, "example.com/late"]}})
        assert caught.value.message.endswith(
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
            'found new finalizers []string{"example.com/late"}'
        )

    def test_cannot_be_taken_back(self, cluster: Cluster) -> None:
        cluster.machine("m", meta={"finalizers": [FINALIZER]})
        cluster.delete("machines", "m")
        patched = cluster.merge("machines", "m", {"metadata": {"deletionTimestamp": None}, "spec": {"replicas": 4}})
        assert patched["metadata"]["deletionTimestamp"] == "2030-01-02T03:04:05Z"
        assert patched["spec"]["replicas"] == 4

    @pytest.mark.parametrize("option", ["uid", "resource_version"])
    def test_heeds_preconditions(self, cluster: Cluster, option: str) -> None:
        cluster.machine("m")
        with pytest.raises(ApiError) as caught:
            cluster.delete("machines", "m", **{option: "1"})
        assert (caught.value.code, caught.value.reason) == (409, "Conflict")
        assert "in the precondition (1) does not match the" in caught.value.message
        assert cluster.has("machines", "m")

    def test_knows_three_ways_to_treat_dependents(self, cluster: Cluster) -> None:
        cluster.machine("m")
        with pytest.raises(ApiError) as caught:
            cluster.delete("machines", "m", propagation="Sideways")
        assert caught.value.message == (
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Sideways": '
            'supported values: "Foreground", "Background", "Orphan", "nil"'
        )

    def test_on_a_dry_run_deletes_nothing(self, cluster: Cluster) -> None:
        cluster.machine("m", meta={"finalizers": [FINALIZER]})
        cluster.machine("n")
        before = cluster.store.resource_version
        assert cluster.delete("machines", "m", dry_run=True)["metadata"]["deletionTimestamp"]
        cluster.delete("machines", "n", dry_run=True)
        assert cluster.store.resource_version == before

    def test_of_a_collection_deletes_what_is_selected(self, cluster: Cluster) -> None:
        for name, tier in (("a", "x"), ("b", "y"), ("c", "x")):
            cluster.machine(name, meta={"labels": {"tier": tier}})
        gone = cluster.store.delete_collection(
            cluster.res("machines"), "default", ListOptions(label_selector="tier=x"), DeleteOptions()
        )
        assert [item["metadata"]["name"] for item in gone.items] == ["a", "c"]
        assert cluster.names("machines") == ["b"]


class TestPodsOnNodes:
    @pytest.fixture
    def cluster(self) -> Cluster:
        return Cluster(options=StoreOptions(kubelets_confirm_deletes=True))

    def test_stay_until_their_kubelet_confirms(self, cluster: Cluster) -> None:
        cluster.pod("p")
        marked = cluster.delete("pods", "p")
        assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
        assert marked["metadata"]["deletionTimestamp"] == "2030-01-02T03:04:35Z"
        assert cluster.has("pods", "p")
        cluster.delete("pods", "p", grace_seconds=0)
        assert not cluster.has("pods", "p")

    def test_can_be_given_less_time_but_not_more(self, cluster: Cluster) -> None:
        cluster.pod("p")
        cluster.delete("pods", "p", grace_seconds=10)
        assert cluster.delete("pods", "p", grace_seconds=60)["metadata"]["deletionGracePeriodSeconds"] == 10
        assert cluster.delete("pods", "p", grace_seconds=2)["metadata"]["deletionGracePeriodSeconds"] == 2

    def test_go_at_once_if_no_kubelet_has_them_or_they_have_ended(self, cluster: Cluster) -> None:
        cluster.create("pods", {"metadata": {"name": "unbound"}, "spec": {"containers": [{"name": "c"}]}})
        cluster.pod("ended")
        cluster.merge("pods", "ended", {"status": {"phase": "Succeeded"}}, subresource="status")
        for name in ("unbound", "ended"):
            cluster.delete("pods", name)
        assert cluster.names("pods") == []

    def test_stay_while_finalizers_hold_them_even_when_confirmed(self, cluster: Cluster) -> None:
        cluster.pod("p", finalizers=[FINALIZER])
        cluster.delete("pods", "p")
        cluster.delete("pods", "p", grace_seconds=0)
        assert cluster.has("pods", "p")
        cluster.merge("pods", "p", {"metadata": {"finalizers": None}})
        assert not cluster.has("pods", "p")

    def test_are_not_removed_by_losing_a_finalizer_before_that(self, cluster: Cluster) -> None:
        cluster.pod("p", finalizers=[FINALIZER])
        cluster.delete("pods", "p")
        cluster.merge("pods", "p", {"metadata": {"finalizers": None}})
        assert cluster.has("pods", "p")


class TestBackgroundCollection:
    def test_takes_the_dependents_of_dependents_too(self, cluster: Cluster) -> None:
        top = cluster.machine("top")
        middle = cluster.machine("middle", meta={"ownerReferences": owned_by(top)})
        cluster.machine("leaf", meta={"ownerReferences": owned_by(middle)})
        cluster.settle()
        assert cluster.names("machines") == ["leaf", "middle", "top"]
        cluster.delete("machines", "top", propagation="Background")
        assert cluster.names("machines") == ["leaf", "middle"]
        cluster.settle()
        assert cluster.names("machines") == []

    def test_spares_what_has_another_owner_and_drops_the_dangling_reference(self, cluster: Cluster) -> None:
        first, second = cluster.machine("first"), cluster.machine("second")
        cluster.machine("child", meta={"ownerReferences": owned_by(first, second)})
        cluster.delete("machines", "first")
        cluster.settle()
        assert cluster.get("machines", "child")["metadata"]["ownerReferences"] == owned_by(second)

    def test_takes_what_is_created_with_an_owner_that_is_gone(self, cluster: Cluster) -> None:
        owner = cluster.machine("owner")
        cluster.delete("machines", "owner")
        cluster.machine("late", meta={"ownerReferences": owned_by(owner)})
        cluster.settle()
        assert not cluster.has("machines", "late")

    def test_is_not_fooled_by_another_object_of_the_owners_name(self, cluster: Cluster) -> None:
        owner = cluster.machine("owner")
        cluster.machine("child", meta={"ownerReferences": owned_by(owner)})
        cluster.delete("machines", "owner")
        cluster.machine("owner")
        cluster.settle()
        assert cluster.names("machines") == ["owner"]

    def test_takes_owners_of_other_namespaces_for_absent(self, cluster: Cluster) -> None:
        cluster.namespace("other")
        owner = cluster.machine("owner", ns="other")
        cluster.machine("child", meta={"ownerReferences": owned_by(owner)})
        cluster.settle()
        assert not cluster.has("machines", "child")

    def test_accepts_cluster_scoped_owners(self, cluster: Cluster) -> None:
        node = cluster.create("nodes", {"metadata": {"name": "n"}})
        cluster.create("leases", {"metadata": {"name": "n", "ownerReferences": owned_by(node)}}, "kube-node-lease")
        cluster.settle()
        assert cluster.has("leases", "n", "kube-node-lease")
        cluster.delete("nodes", "n")
        cluster.settle()
        assert not cluster.has("leases", "n", "kube-node-lease")

    def test_leaves_alone_what_is_owned_by_a_kind_nobody_knows(self, cluster: Cluster) -> None:
        reference = {"apiVersion": "nowhere.io/v1", "kind": "Ghost", "name": "g", "uid": "u-1"}
        cluster.machine("m", meta={"ownerReferences": [reference]})
        cluster.settle()
        assert cluster.has("machines", "m")

    def test_waits_for_the_finalizers_of_dependents(self, cluster: Cluster) -> None:
        owner = cluster.machine("owner")
        cluster.machine("child", meta={"ownerReferences": owned_by(owner), "finalizers": [FINALIZER]})
        cluster.delete("machines", "owner")
        cluster.settle()
        assert cluster.get("machines", "child")["metadata"]["deletionTimestamp"]

    def test_notices_owners_that_are_added_later(self, cluster: Cluster) -> None:
        owner = cluster.machine("owner")
        cluster.machine("child")
        cluster.merge("machines", "child", {"metadata": {"ownerReferences": owned_by(owner)}})
        cluster.delete("machines", "owner")
        cluster.settle()
        assert cluster.names("machines") == []


class TestForegroundDeletion:
    def test_ends_with_the_owner_after_the_dependents_that_block_it(self, cluster: Cluster) -> None:
        owner = cluster.machine("owner")
        references = owned_by(owner, block=True)
        cluster.machine("held", meta={"ownerReferences": references, "finalizers": [FINALIZER]})
        cluster.machine("free", meta={"ownerReferences": references})
        marked = cluster.delete("machines", "owner", propagation="Foreground")
        assert marked["metadata"]["finalizers"] == ["foregroundDeletion"]
        cluster.settle()
        assert cluster.names("machines") == ["held", "owner"]
        assert cluster.get("machines", "held")["metadata"]["deletionTimestamp"]
        cluster.merge("machines", "held", {"metadata": {"finalizers": None}})
        cluster.settle()
        assert cluster.names("machines") == []

    def test_does_not_wait_for_dependents_that_do_not_block(self, cluster: Cluster) -> None:
        owner = cluster.machine("owner")
        cluster.machine("held", meta={"ownerReferences": owned_by(owner), "finalizers": [FINALIZER]})
        cluster.delete("machines", "owner", propagation="Foreground")
        cluster.settle()
        assert cluster.names("machines") == ["held"]
        assert cluster.get("machines", "held")["metadata"]["deletionTimestamp"]

    def test_goes_down_all_levels_before_the_top_goes(self, cluster: Cluster) -> None:
        top = cluster.machine("top")
        middle = cluster.machine("middle", meta={"ownerReferences": owned_by(top, block=True)})
        leaf = {"ownerReferences": owned_by(middle, block=True), "finalizers": [FINALIZER]}
        cluster.machine("leaf", meta=leaf)
        cluster.delete("machines", "top", propagation="Foreground")
        cluster.settle()
        assert cluster.names("machines") == ["leaf", "middle", "top"]
        cluster.merge("machines", "leaf", {"metadata": {"finalizers": None}})
        cluster.settle()
        assert cluster.names("machines") == []

    def test_lets_go_of_a_dependent_that_has_another_owner(self, cluster: Cluster) -> None:
        owner, other = cluster.machine("owner"), cluster.machine("other")
        cluster.machine("child", meta={"ownerReferences": owned_by(owner, other, block=True)})
        cluster.delete("machines", "owner", propagation="Foreground")
        cluster.settle()
        assert cluster.names("machines") == ["child", "other"]
        assert cluster.get("machines", "child")["metadata"]["ownerReferences"] == owned_by(other, block=True)

    def test_ends_when_the_last_blocker_stops_blocking(self, cluster: Cluster) -> None:
        owner = cluster.machine("owner")
        blocking = {"ownerReferences": owned_by(owner, block=True), "finalizers": [FINALIZER]}
        cluster.machine("child", meta=blocking)
        cluster.delete("machines", "owner", propagation="Foreground")
        cluster.settle()
        cluster.merge("machines", "child", {"metadata": {"ownerReferences": owned_by(owner)}})
        cluster.settle()
        assert cluster.names("machines") == ["child"]

    def test_can_be_changed_to_background(self, cluster: Cluster) -> None:
        owner = cluster.machine("owner")
        blocking = {"ownerReferences": owned_by(owner, block=True), "finalizers": [FINALIZER]}
        cluster.machine("child", meta=blocking)
        cluster.delete("machines", "owner", propagation="Foreground")
        cluster.settle()
        cluster.delete("machines", "owner", propagation="Background")
        assert not cluster.has("machines", "owner")


class TestOrphaning:
    def test_keeps_the_dependents_and_takes_away_their_reference(self, cluster: Cluster) -> None:
        owner, other = cluster.machine("owner"), cluster.machine("other")
        cluster.machine("child", meta={"ownerReferences": owned_by(owner)})
        cluster.machine("shared", meta={"ownerReferences": owned_by(owner, other)})
        marked = cluster.delete("machines", "owner", propagation="Orphan")
        assert marked["metadata"]["finalizers"] == ["orphan"]
        cluster.settle()
        assert cluster.names("machines") == ["child", "other", "shared"]
        assert "ownerReferences" not in cluster.get("machines", "child")["metadata"]
        assert cluster.get("machines", "shared")["metadata"]["ownerReferences"] == owned_by(other)

    def test_is_what_jobs_do_unless_told_otherwise(self, cluster: Cluster) -> None:
        job = cluster.create("jobs", {"metadata": {"name": "j"}, "spec": {}})
        cluster.pod("p", ownerReferences=owned_by(job))
        cluster.delete("jobs", "j")
        cluster.settle()
        assert not cluster.has("jobs", "j")
        assert cluster.has("pods", "p")


def test_collection_stops_where_it_is_told_and_goes_on_later(cluster: Cluster) -> None:
    owner = cluster.machine("owner")
    for index in range(10):
        cluster.machine(f"m-{index}", meta={"ownerReferences": owned_by(owner)})
    cluster.delete("machines", "owner")
    assert cluster.store.run_gc(4) == 4
    assert len(cluster.names("machines")) == 6
    assert cluster.store.gc_pending == 6
    cluster.settle()
    assert cluster.names("machines") == []
