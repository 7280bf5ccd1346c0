"""The scale subresource, PodDisruptionBudgets and evictions."""

from __future__ import annotations

from typing import Any

import pytest

from nodewright.apiserver.store import StoreOptions
from nodewright.apiserver.values import ApiError, Obj, PatchRequest, WriteOptions
from tests.apiserver.store.cluster import Cluster, owned_by


class TestScale:
    @pytest.fixture
    def machine(self, cluster: Cluster) -> Obj:
        cluster.machine("m", spec={"replicas": 3})
        status = {"status": {"replicas": 2, "labelSelector": "a=b"}}
        return cluster.merge("machines", "m", status, subresource="status")

    def scale(self, cluster: Cluster) -> Obj:
        return cluster.store.get_scale(cluster.res("machines"), "default", "m")

    def test_shows_what_the_paths_of_the_kind_point_at(self, cluster: Cluster, machine: Obj) -> None:
        scale = self.scale(cluster)
        assert (scale["apiVersion"], scale["kind"]) == ("autoscaling/v1", "Scale")
        assert scale["spec"] == {"replicas": 3}
        assert scale["status"] == {"replicas": 2, "selector": "a=b"}
        for field in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp"):
            assert scale["metadata"][field] == machine["metadata"][field]

    def test_sets_the_replicas_and_bumps_the_generation(self, cluster: Cluster, machine: Obj) -> None:
        request = PatchRequest("merge", {"spec": {"replicas": 7}})
        answer = cluster.store.patch(cluster.res("machines"), "default", "m", request, subresource="scale").obj
        assert (answer["kind"], answer["spec"]) == ("Scale", {"replicas": 7})
        scaled = cluster.get("machines", "m")
        assert scaled["spec"]["replicas"] == 7
        assert scaled["status"] == machine["status"]
        assert scaled["metadata"]["generation"] == machine["metadata"]["generation"] + 1

    def test_may_be_put_back_whole(self, cluster: Cluster, machine: Obj) -> None:
        scale = {**self.scale(cluster), "spec": {"replicas": 0}}
        cluster.store.update(cluster.res("machines"), "default", "m", scale, subresource="scale")
        assert cluster.get("machines", "m")["spec"]["replicas"] == 0
        with pytest.raises(ApiError) as caught:
            cluster.store.update(cluster.res("machines"), "default", "m", scale, subresource="scale")
        assert caught.value.reason == "Conflict"

    @pytest.mark.parametrize(("replicas", "code"), [(-1, 422), ("3", 400), (True, 400), (1.5, 400)])
    def test_refuses_bad_numbers(self, cluster: Cluster, machine: Obj, replicas: Any, code: int) -> None:
        request = PatchRequest("merge", {"spec": {"replicas": replicas}})
        with pytest.raises(ApiError) as caught:
            cluster.store.patch(cluster.res("machines"), "default", "m", request, subresource="scale")
        assert caught.value.code == code
        assert cluster.get("machines", "m") == machine

    def test_on_a_dry_run_stays(self, cluster: Cluster, machine: Obj) -> None:
        request = PatchRequest("merge", {"spec": {"replicas": 9}}, WriteOptions(dry_run=True))
        answer = cluster.store.patch(cluster.res("machines"), "default", "m", request, subresource="scale").obj
        assert answer["spec"] == {"replicas": 9}
        assert cluster.get("machines", "m") == machine

    def test_of_a_deployment_writes_its_selector_as_text(self, cluster: Cluster) -> None:
        selector = {
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "tier", "operator": "In", "values": ["b", "a"]}],
        }
        labels = {"app": "web", "tier": "a"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        cluster.create("deployments", {"metadata": {"name": "d"}, "spec": {"selector": selector, "template": template}})
        scale = cluster.store.get_scale(cluster.res("deployments"), "default", "d")
        assert scale["spec"] == {"replicas": 1}
        assert scale["status"] == {"replicas": 0, "selector": "app=web,tier in (a,b)"}

    def test_is_not_there_for_kinds_without_it(self, cluster: Cluster) -> None:
        cluster.create("configmaps", {"metadata": {"name": "c"}})
        with pytest.raises(ApiError) as caught:
            cluster.store.get_scale(cluster.res("configmaps"), "default", "c")
        assert caught.value.code == 404


def budget(cluster: Cluster, **spec: Any) -> Obj:
    body = {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}}
    return cluster.create("poddisruptionbudgets", body)


def web_pods(cluster: Cluster, count: int, **more: Any) -> None:
    for index in range(count):
        cluster.pod(f"web-{index}", labels={"app": "web"}, **more)


def numbers(cluster: Cluster) -> tuple[int, int, int, int]:
    cluster.settle()
    status = cluster.get("poddisruptionbudgets", "b")["status"]
    return (
        status["expectedPods"],
        status["currentHealthy"],
        status["desiredHealthy"],
        status["disruptionsAllowed"],
    )


def evict(cluster: Cluster, name: str, **options: Any) -> Obj:
    body: Obj = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}
    if options:
        body["deleteOptions"] = options
    return cluster.store.evict("default", name, body)


def replica_set(cluster: Cluster, replicas: int) -> Obj:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return cluster.create("replicasets", {"metadata": {"name": "rs"}, "spec": spec})


class TestBudgets:
    def test_count_ready_pods_against_a_minimum(self, cluster: Cluster) -> None:
        web_pods(cluster, 3)
        budget(cluster, minAvailable=2)
        assert numbers(cluster) == (3, 3, 2, 1)
        cluster.pod("web-3", labels={"app": "web"}, ready=False)
        cluster.pod("db", labels={"app": "db"})
        assert numbers(cluster) == (4, 3, 2, 1)
        cluster.delete("pods", "web-0")
        assert numbers(cluster) == (3, 2, 2, 0)
        conditions = cluster.get("poddisruptionbudgets", "b")["status"]["conditions"]
        assert (conditions[0]["type"], conditions[0]["reason"]) == ("DisruptionAllowed", "InsufficientPods")

    def test_ask_the_pods_controllers_for_what_a_maximum_is_of(self, cluster: Cluster) -> None:
        owner = replica_set(cluster, 4)
        web_pods(cluster, 3, ownerReferences=owned_by(owner, controller=True))
        budget(cluster, maxUnavailable=1)
        assert numbers(cluster) == (4, 3, 3, 0)
        cluster.merge("replicasets", "rs", {"spec": {"replicas": 3}})
        assert numbers(cluster) == (3, 3, 2, 1)

    @pytest.mark.parametrize(
        ("spec", "wanted"),
        [
            ({"maxUnavailable": "34%"}, (3, 3, 1, 2)),
            ({"minAvailable": "34%"}, (3, 3, 2, 1)),
            ({"minAvailable": "100%"}, (3, 3, 3, 0)),
            ({"maxUnavailable": 0}, (3, 3, 3, 0)),
            ({"maxUnavailable": 9}, (3, 3, 0, 3)),
        ],
    )
    def test_round_percentages_up(self, cluster: Cluster, spec: Obj, wanted: tuple[int, ...]) -> None:
        owner = replica_set(cluster, 3)
        web_pods(cluster, 3, ownerReferences=owned_by(owner, controller=True))
        budget(cluster, **spec)
        assert numbers(cluster) == wanted

    def test_allow_nothing_when_the_controllers_cannot_be_asked(self, cluster: Cluster) -> None:
        job = cluster.create("jobs", {"metadata": {"name": "j"}, "spec": {}})
        web_pods(cluster, 2, ownerReferences=owned_by(job, controller=True))
        budget(cluster, maxUnavailable=1)
        assert numbers(cluster)[3] == 0
        condition = cluster.get("poddisruptionbudgets", "b")["status"]["conditions"][0]
        assert condition["reason"] == "SyncFailed"
        assert "found no controllers for pod" in condition["message"]

    def test_select_everything_by_an_empty_selector_and_nothing_without_one(self, cluster: Cluster) -> None:
        web_pods(cluster, 2)
        body = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {}}}
        cluster.create("poddisruptionbudgets", body)
        assert numbers(cluster) == (2, 2, 1, 1)
        cluster.merge("poddisruptionbudgets", "b", {"spec": {"selector": None}})
        assert numbers(cluster) == (0, 0, 1, 0)

    def test_are_written_only_when_their_numbers_change(self, cluster: Cluster) -> None:
        web_pods(cluster, 2)
        budget(cluster, minAvailable=1)
        cluster.settle()
        watch = cluster.watch("poddisruptionbudgets")
        cluster.merge("pods", "web-0", {"metadata": {"annotations": {"a": "b"}}})
        cluster.settle()
        assert watch.poll() == []

    @pytest.mark.parametrize(
        ("spec", "words"),
        [
            ({"minAvailable": 1, "maxUnavailable": 1}, "minAvailable and maxUnavailable cannot be both set"),
            ({"minAvailable": -1}, "spec.minAvailable: Invalid value: -1"),
            ({"maxUnavailable": "half"}, 'spec.maxUnavailable: Invalid value: "half"'),
        ],
    )
    def test_must_make_sense(self, cluster: Cluster, spec: Obj, words: str) -> None:
        with pytest.raises(ApiError) as caught:
            budget(cluster, **spec)
        assert words in caught.value.message


class TestEviction:
    def test_deletes_the_pod(self, cluster: Cluster) -> None:
        cluster.pod("p")
        answer = evict(cluster, "p")
        assert (answer["kind"], answer["status"], answer["code"]) == ("Status", "Success", 201)
        assert not cluster.has("pods", "p")

    def test_stops_at_the_budget_even_before_its_status_is_computed(self, cluster: Cluster) -> None:
        web_pods(cluster, 3)
        budget(cluster, minAvailable=2)
        evict(cluster, "web-0")
        with pytest.raises(ApiError) as caught:
            evict(cluster, "web-1")
        error = caught.value
        assert (error.code, error.reason) == (429, "TooManyRequests")
        assert error.message == "Cannot evict pod as it would violate the pod's disruption budget."
        assert (error.details or {})["causes"] == [
            {
                "reason": "DisruptionBudget",
                "message": "The disruption budget b needs 2 healthy pods and has 2 currently",
            }
        ]
        assert cluster.names("pods") == ["web-1", "web-2"]

    def test_does_not_count_a_pod_that_is_on_its_way_out(self) -> None:
        cluster = Cluster(options=StoreOptions(kubelets_confirm_deletes=True))
        web_pods(cluster, 3)
        budget(cluster, minAvailable=2)
        evict(cluster, "web-0")
        assert cluster.names("pods") == ["web-0", "web-1", "web-2"]
        with pytest.raises(ApiError) as caught:
            evict(cluster, "web-1")
        assert caught.value.code == 429
        assert numbers(cluster) == (3, 2, 2, 0)
        evict(cluster, "web-0")

    def test_goes_on_once_another_pod_is_ready(self, cluster: Cluster) -> None:
        web_pods(cluster, 2)
        budget(cluster, minAvailable=2)
        with pytest.raises(ApiError):
            evict(cluster, "web-0")
        cluster.pod("web-2", labels={"app": "web"})
        evict(cluster, "web-0")
        assert cluster.names("pods") == ["web-1", "web-2"]

    @pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
    def test_of_a_pod_that_does_not_run_asks_no_budget(self, cluster: Cluster, phase: str) -> None:
        web_pods(cluster, 1)
        cluster.merge("pods", "web-0", {"status": {"phase": phase}}, subresource="status")
        budget(cluster, minAvailable=1)
        evict(cluster, "web-0")
        assert cluster.names("pods") == []

    def test_of_an_unhealthy_pod_is_free_if_the_others_suffice_or_the_budget_says_so(self, cluster: Cluster) -> None:
        web_pods(cluster, 1)
        cluster.pod("sick", labels={"app": "web"}, ready=False)
        budget(cluster, minAvailable=1)
        evict(cluster, "sick")
        cluster.pod("sick", labels={"app": "web"}, ready=False)
        cluster.merge("poddisruptionbudgets", "b", {"spec": {"minAvailable": 2}})
        with pytest.raises(ApiError):
            evict(cluster, "sick")
        policy = {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}}
        cluster.merge("poddisruptionbudgets", "b", policy)
        evict(cluster, "sick")
        assert cluster.names("pods") == ["web-0"]

    def test_refuses_to_choose_between_two_budgets(self, cluster: Cluster) -> None:
        web_pods(cluster, 1)
        budget(cluster, minAvailable=0)
        body = {"metadata": {"name": "c"}, "spec": {"selector": {}, "minAvailable": 0}}
        cluster.create("poddisruptionbudgets", body)
        with pytest.raises(ApiError) as caught:
            evict(cluster, "web-0")
        assert caught.value.code == 500
        assert "more than one PodDisruptionBudget" in caught.value.message

    def test_heeds_preconditions_and_dry_runs(self, cluster: Cluster) -> None:
        cluster.pod("p")
        with pytest.raises(ApiError) as caught:
            evict(cluster, "p", preconditions={"uid": "other"})
        assert caught.value.reason == "Conflict"
        evict(cluster, "p", dryRun=["All"])
        assert cluster.has("pods", "p")

    def test_of_what_is_not_there_is_not_found(self, cluster: Cluster) -> None:
        with pytest.raises(ApiError) as caught:
            evict(cluster, "p")
        assert caught.value.message == 'pods "p" not found'

    @pytest.mark.parametrize("body", [None, [], {"kind": "Pod"}])
    def test_needs_an_eviction(self, cluster: Cluster, body: Any) -> None:
        cluster.pod("p")
        with pytest.raises(ApiError) as caught:
            cluster.store.evict("default", "p", body)
        assert caught.value.code == 400
