"""Which machines go: the cases that the original gets wrong, by their number in docs/tasks/cloudpool-proxy.md."""

from __future__ import annotations

from typing import Any

import pytest

from api.names import SCALE_DOWN_DISABLED_ANNOTATION
from controllers.cloudpool.scaledown import Forward, NotMember, Rules, Shrink, Victim
from controllers.cloudpool.world import Objects
from tests.controllers.cloudpool.fleet import Fleet, budget, machine, node, pod, refusal, victims


def three(*pods: dict[str, Any], **more: Any) -> Fleet:
    return Fleet([node("a"), node("b"), node("c")], pods, **more)


def test_defect_01_machines_that_are_no_known_node_make_the_scale_down_refused_not_forwarded() -> None:
    strangers = [machine(f"x-{number}") for number in range(3)]
    assert "is any Node by provider ID, name, address or external ID" in refusal(three(machines=strangers).to(2))
    assert "is any Node" in refusal(three(machines=strangers).without("x-1"))


def test_defect_01_machines_are_known_by_their_provider_id_where_no_external_id_is_written() -> None:
    assert victims(three(pod("p", "a"), pod("q", "c")).to(2)) == ["b"]


def test_defect_02_a_booting_machine_counts_and_goes_first_by_its_name() -> None:
    fleet = Fleet([node("a"), node("b")], machines=[machine("a"), machine("b"), machine("boot", "PENDING")])
    assert victims(fleet.to(2)) == ["boot"]


def test_defect_02_a_request_goes_before_a_machine_that_boots() -> None:
    fleet = Fleet([node("a")], machines=[machine("a"), machine("boot", "PENDING"), machine("z", "REQUESTED")])
    assert victims(fleet.to(2)) == ["z"]
    assert victims(fleet.to(1)) == ["z", "boot"]


def test_a_running_machine_that_is_no_node_is_no_victim() -> None:
    fleet = Fleet([node("a"), node("b")], machines=[machine("a"), machine("b"), machine("stranger")])
    assert victims(fleet.to(2)) == ["a"]
    assert "no kubernetes node of machine stranger exists" in refusal(fleet.without("stranger"))


def test_defect_05_victims_are_planned_together_so_that_all_their_pods_find_room() -> None:
    fleet = Fleet([node("a", "1"), node("b", "1"), node("c", "1")],
                  [pod("p", "a", "450m"), pod("q", "b", "400m"), pod("r", "c", "500m")])  # fmt: skip
    found = fleet.to(1)
    assert len(victims(found)) == 1, "two of them would not fit on the third"
    assert isinstance(found, Shrink)
    assert found.missing == 1


def test_defect_05_a_victim_is_no_place_for_the_pods_of_another() -> None:
    fleet = Fleet([node("a", "1"), node("b", "1"), node("c", "4")],
                  [pod("p", "a", "100m"), pod("q", "b", "200m"), pod("r", "c", "3600m")])  # fmt: skip
    assert victims(fleet.to(1)) == ["a", "b"]
    found = Fleet(fleet.nodes, [*fleet.pods, pod("s", "c", "300m")]).to(1)
    assert victims(found) == ["a"]


def test_defect_07_an_owner_without_a_controller_mark_is_no_controller_and_no_crash() -> None:
    loose = pod("p", "a", owners=[{"apiVersion": "v1", "kind": "ReplicaSet", "name": "x", "uid": "u"}])
    fleet = three(loose, pod("q", "b"), pod("r", "c", "1"))
    assert victims(fleet.to(2)) == ["b"]
    assert "no controller would make it anew" in refusal(fleet.without("a"))


def test_defect_07_a_node_that_offers_nothing_is_no_crash() -> None:
    empty = node("a", "0")
    empty["status"]["allocatable"] = {"cpu": "0", "memory": "0", "pods": "10"}
    assert victims(Fleet([empty, node("b"), node("c")], [pod("p", "b"), pod("q", "c")]).to(2)) == ["a"]


def test_defect_12_a_budget_holds_pods_of_its_own_namespace_only() -> None:
    pods = [pod("p", "a"), pod("q", "b", "1"), pod("r", "c", "1")]
    elsewhere = three(*pods, budgets=[budget("other", 0, {"app": "web"}, "elsewhere")])
    assert victims(elsewhere.to(2)) == ["a"]
    everything = three(*pods, budgets=[budget("other", 0, None, "elsewhere")])
    assert victims(everything.to(2)) == ["a"]
    here = three(*pods, budgets=[budget("mine", 0, {"app": "web"})])
    assert "PodDisruptionBudget default/mine allows 0 disruptions" in refusal(here.to(2))


def test_defect_12_what_one_victim_takes_of_a_budget_the_next_one_lacks() -> None:
    fleet = three(pod("p", "a"), pod("q", "b", "200m"), pod("r", "c", "1"), budgets=[budget("one", 1, {"app": "web"})])
    found = fleet.to(1)
    assert victims(found) == ["a"]
    assert isinstance(found, Shrink)
    assert "1 of them taken by Nodes that go before" in found.kept["b"]


TERMS = [
    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["nowhere"]}]},
    {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["c"]}]},
]


def test_defect_13_any_of_several_affinity_terms_will_do() -> None:
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": TERMS}}}
    assert victims(three(pod("p", "a", affinity=affinity), pod("q", "b", "1"), pod("r", "c", "1")).to(2)) == ["a"]


FIELD = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]
UNMOVABLE: dict[str, dict[str, Any]] = {
    "matchFields": {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": FIELD}}}
    },
    "anti-affinity": {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
                ]
            }
        }
    },
    "a host port": {"ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]},
    "an extended resource": {"requests": {"example.com/gpu": "1"}},
    "an init container": {"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "100"}}}]},
    "overhead": {"overhead": {"cpu": "100"}},
}


def test_a_refusal_lists_what_a_few_nodes_have_free_and_what_the_pod_needs() -> None:
    nodes = [node("a"), *(node(f"n{number}", cpu="1") for number in range(5))]
    told = refusal(Fleet(nodes, [pod("p", "a", "3"), *(pod(f"q{n}", f"n{n}", "800m") for n in range(5))]).without("a"))
    assert "Node n0 has only 200m cpu" in told
    assert "and 2 more; the pod needs 3000m cpu" in told
    assert told.count("has only") == 3
    asked = Fleet(
        [node("a"), node("b")], [pod("p", "a", requests={"memory": "12Gi"}), pod("q", "b", requests={"memory": "8Gi"})]
    )
    assert "8192Mi memory free; the pod needs 100m cpu, 12288Mi memory" in refusal(asked.without("a"))


@pytest.mark.parametrize("what", UNMOVABLE)
def test_defect_13_what_the_scheduler_would_refuse_keeps_the_node(what: str) -> None:
    more = UNMOVABLE[what]
    same = {"ports": more["ports"]} if "ports" in more else {}
    fleet = three(pod("p", "a", **more), pod("q", "b", "1", **same), pod("r", "c", "1", **same))
    assert "would stay pending" in refusal(fleet.without("a"))


def test_defect_13_a_volume_that_can_be_used_in_one_zone_only_keeps_its_pod_there() -> None:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}]
    bound = {"metadata": {"name": "v"}, "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}}
    done = {"pv.kubernetes.io/bind-completed": "yes"}
    claim = {"metadata": {"name": "c", "namespace": "default", "annotations": done}, "spec": {"volumeName": "v"}}
    mounted = pod("p", "a", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
    nodes = [node("a", labels={"zone": "z1"}), node("b", labels={"zone": "z2"})]
    more = Objects(claims=[claim], volumes=[bound])
    assert "would stay pending" in refusal(Fleet(nodes, [mounted], more=more).without("a"))
    near = [*nodes, node("c", labels={"zone": "z1"})]
    assert victims(Fleet(near, [mounted, pod("q", "b", "1"), pod("r", "c", "1")], more=more).to(2)) == ["a"]


@pytest.mark.parametrize("claimed", ["missing", "unbound", "lost"])
def test_defect_13_a_pod_whose_claim_is_missing_or_unbound_keeps_its_node(claimed: str) -> None:
    """Made anew elsewhere it would stay pending."""
    meta = {"name": "c", "namespace": "default"}
    done = {"pv.kubernetes.io/bind-completed": "yes"}
    claims: dict[str, list[dict[str, Any]]] = {
        "missing": [],
        "unbound": [{"metadata": meta, "spec": {"storageClassName": "none"}}],
        "lost": [{"metadata": {**meta, "annotations": done}, "spec": {"volumeName": "gone"}}],
    }
    mounted = pod("p", "a", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
    fleet = Fleet([node("a"), node("b")], [mounted, pod("q", "b", "1")], more=Objects(claims=claims[claimed]))
    assert "would stay pending" in refusal(fleet.without("a"))
    assert victims(fleet.to(1)) == ["b"]


def test_defect_13_as_many_pods_as_a_node_takes_at_most() -> None:
    small = node("b")
    small["status"]["allocatable"]["pods"] = "1"
    fleet = Fleet([node("a"), small], [pod("p", "a"), pod("q", "b")])
    assert "would stay pending" in refusal(fleet.without("a"))


def test_defect_13_big_pods_are_seated_before_small_ones() -> None:
    fleet = Fleet([node("a", "4"), node("b", "1"), node("c", "2")],
                  [pod("small", "a", "900m"), pod("big", "a", "1900m")])  # fmt: skip
    assert isinstance(fleet.without("a"), Victim)


def test_defect_14_completed_pods_take_no_room_and_hold_nobody() -> None:
    done = pod("done", "c", "4", phase="Succeeded")
    bare = pod("bare", "a", phase="Failed", owners=[])
    assert victims(three(pod("p", "a"), pod("q", "b", "3500m"), pod("r", "c", "3"), done, bare).to(2)) == ["a"]


DAEMON = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "uid-d", "controller": True}]


def test_defect_14_pods_of_daemon_sets_and_static_pods_need_no_new_home() -> None:
    daemon = pod("d", "a", "3", owners=DAEMON)
    static = pod("s", "a", owners=[], annotations={"kubernetes.io/config.mirror": "x"})
    full = [pod("q", "b", "3900m"), pod("r", "c", "3900m")]
    assert victims(three(daemon, static, *full).to(2)) == ["a"]


def test_defect_14_a_pod_that_has_been_terminating_for_long_is_not_waited_for() -> None:
    ending = pod("p", "a", owners=[], terminationGracePeriodSeconds=30)
    ending["metadata"]["deletionTimestamp"] = "2026-11-20T11:00:00Z"
    assert victims(three(ending, pod("q", "b"), pod("r", "c", "1")).to(2)) == ["a"]


def test_defect_15_pods_of_kube_system_need_a_place_as_all_others() -> None:
    dns = pod("dns", "a", "2", namespace="kube-system")
    full = [pod("q", "b", "3"), pod("r", "c", "3")]
    assert "pod kube-system/dns would stay pending" in refusal(three(dns, *full).without("a"))
    assert isinstance(three(dns, pod("q", "b", "3"), pod("r", "c", "1")).without("a"), Victim)


def test_defect_15_a_young_system_pod_may_be_told_to_keep_its_node() -> None:
    dns = pod("dns", "a", namespace="kube-system")
    dns["metadata"]["creationTimestamp"] = "2026-11-20T11:59:00Z"
    fleet = three(dns, pod("q", "b"), pod("r", "c"), rules=Rules(system_pods_block=True))
    assert "has no PodDisruptionBudget and is young" in refusal(fleet.without("a"))


@pytest.mark.parametrize("label", ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"])
def test_defect_16_a_control_plane_is_known_by_its_labels(label: str) -> None:
    fleet = Fleet([node("a", labels={label: ""}), node("b"), node("c")], [pod("q", "b"), pod("r", "c", "1")])
    assert victims(fleet.to(2)) == ["b"]
    assert f"it is a Node of the control plane ({label})" in refusal(fleet.without("a"))


def test_defect_16_a_control_plane_is_known_by_its_api_server_too_and_takes_no_pods() -> None:
    server = pod("kube-apiserver-c", "c", namespace="kube-system", labels={"component": "kube-apiserver"})
    fleet = Fleet(
        [node("a", "1"), node("b", "1"), node("c", "64")], [pod("p", "a", "600m"), pod("q", "b", "600m"), server]
    )
    assert "would stay pending" in refusal(fleet.without("a"))


def test_defect_17_what_may_be_lost_with_a_node_is_said_by_annotations_and_options() -> None:
    volume = [{"name": "scratch", "emptyDir": {}}]
    plain = pod("p", "a", volumes=volume)
    others = [pod("q", "b", "1"), pod("r", "c", "1")]
    assert "keeps data on the Node (volumes scratch)" in refusal(three(plain, *others).without("a"))
    key = "cluster-autoscaler.kubernetes.io/safe-to-evict"
    for said in ({key: "true"}, {f"{key}-local-volumes": "scratch"}):
        assert victims(three(pod("p", "a", volumes=volume, annotations=said), *others).to(2)) == ["a"]
    assert victims(three(plain, *others, rules=Rules(local_storage_blocks=False)).to(2)) == ["a"]
    in_memory = pod("p", "a", volumes=[{"name": "scratch", "emptyDir": {"medium": "Memory"}}])
    assert victims(three(in_memory, *others).to(2)) == ["a"]
    kept = pod("p", "a", annotations={key: "false"})
    assert 'its annotation safe-to-evict is "false"' in refusal(three(kept, *others).without("a"))


def test_defect_23_the_last_worker_may_go_when_it_is_empty() -> None:
    assert victims(Fleet([node("a")]).to(0)) == ["a"]
    assert victims(three().to(0)) == ["a", "b", "c"]
    assert "would stay pending" in refusal(Fleet([node("a")], [pod("p", "a")]).to(0))


def test_defect_23_a_node_whose_kubelet_is_silent_goes_before_all_others() -> None:
    fleet = Fleet([node("a"), node("b"), node("c", ready=False)], [pod("q", "b")])
    assert victims(fleet.to(2)) == ["c"]
    busy = Fleet([node("a"), node("b"), node("c", ready=False)], [pod("p", "b"), pod("q", "c")])
    assert victims(busy.to(2)) == ["c"]


def test_a_node_that_is_not_ready_takes_no_pods() -> None:
    fleet = Fleet([node("a", "1"), node("b", "1"), node("c", "64", ready=False)],
                  [pod("p", "a", "600m"), pod("q", "b", "600m"), pod("r", "c", "600m")])  # fmt: skip
    assert "would stay pending" in refusal(fleet.without("a"))


def test_what_nobody_has_to_go_for_is_forwarded() -> None:
    assert three().to(3) == Forward(3, "3 machines are wanted and 3 are active", needless=True)
    assert isinstance(three().to(9), Forward)
    assert isinstance(three(desired=10).to(5), Forward), "the pool was still to grow: nobody has to go for five"


def test_machines_that_the_backend_takes_away_itself_are_not_taken_twice() -> None:
    assert isinstance(three(desired=2).to(2), Forward)
    assert len(victims(three(desired=2).to(1))) == 1


def test_a_machine_that_was_terminated_and_is_still_shown_counts_no_more() -> None:
    assert isinstance(three(gone=frozenset({"a"})).to(2), Forward)
    assert isinstance(three(gone=frozenset({"a"})).without("a"), NotMember)


def test_protected_machines_and_nodes_stay_and_it_is_told_why() -> None:
    kept = node("b", annotations={SCALE_DOWN_DISABLED_ANNOTATION: "true"})
    fleet = Fleet([node("a"), kept], machines=[machine("a", evictable=False), machine("b")])
    told = refusal(fleet.to(1))
    assert told.startswith("found no viable candidates for scaling down: a is not a viable scale-down candidate")
    assert "its membershipStatus.evictable is false" in told
    assert "protected from scale-down via the cluster-autoscaler.kubernetes.io/scale-down-disabled annotation" in told


def test_inactive_machines_neither_count_nor_go() -> None:
    fleet = Fleet([node("a"), node("b")], machines=[machine("a", active=False), machine("b")])
    assert isinstance(fleet.to(1), Forward)
    assert victims(fleet.to(0)) == ["b"]


@pytest.mark.parametrize("state", ["TERMINATING", "TERMINATED", "REJECTED"])
def test_a_machine_that_has_ended_is_no_member(state: str) -> None:
    fleet = Fleet([node("a"), node("b")], machines=[machine("a", state), machine("b")])
    assert isinstance(fleet.without("a"), NotMember)
    assert isinstance(fleet.without("nobody"), NotMember)


def test_a_node_that_somebody_else_drains_is_left_to_them() -> None:
    taint = {"key": "nodewright.dev/draining", "value": "uid-1", "effect": "NoSchedule"}
    fleet = Fleet([node("a", taints=[taint]), node("b"), node("c")], [pod("q", "b"), pod("r", "c", "1")])
    assert victims(fleet.to(2)) == ["b"]
    assert "somebody else drains it (for uid-1)" in refusal(fleet.without("a"))


def test_a_pod_that_cannot_be_read_keeps_its_node_and_no_other() -> None:
    odd = pod("p", "a", "many")
    fleet = three(odd, pod("q", "b"), pod("r", "c", "1"))
    assert "its pod default/p can't be read" in refusal(fleet.without("a"))
    assert victims(fleet.to(2)) == ["b"]
