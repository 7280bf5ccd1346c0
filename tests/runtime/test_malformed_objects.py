"""Objects of an unexpected shape: what the cache keeps of them, and that nothing but their own reconcile notices."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest
from hypothesis import given

from api.conditions import RECONCILED, Reason
from controllers.kernel.conditions import find, merge, parse_time
from controllers.kernel.machine_facts import read
from controllers.kernel.node_policy import cluster_key_of, recorded_secret
from controllers.kernel.ownership import cluster_name_of, controller_of, paused_by, references_with, references_without
from controllers.kernel.plan import Plan
from controllers.kernel.refs import (
    CLUSTER,
    CONFIG_MAP,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    NODE,
    POD,
    POD_DISRUPTION_BUDGET,
    Key,
    generation_of,
    key_of,
    labels_of,
    uid_of,
)
from controllers.kernel.waking import selects
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.cache.indexes import INDEXES
from nodewright.runtime.cache.store import Change, Store
from nodewright.runtime.writes import failing
from tests.builders import hostile
from tests.builders.clock import NOW
from tests.builders.objects import cluster, machine, machine_deployment, machine_set, node
from tests.runtime.shell_stage import Stage, story

MS = Key("default", "ms")


def kept(kind: Any, obj: dict[str, Any]) -> dict[str, Any]:
    """What a store shows of ``obj``."""
    store = Store(kind)
    store.watched("ADDED", copy.deepcopy(obj))
    found = store.get(key_of(obj))
    assert found is not None
    return dict(found)


# -- readers of the kernel, which are asked of other objects than the one that is reconciled


@given(hostile.json, hostile.json, hostile.json)
def test_what_is_asked_of_others_is_answered_for_any_json(meta: Any, spec: Any, status: Any) -> None:
    fields = meta if isinstance(meta, dict) else {"labels": meta, "annotations": meta, "ownerReferences": meta}
    obj = {"kind": "Machine", "metadata": {**fields, "name": "m", "namespace": "n"}, "spec": spec, "status": status}
    assert isinstance(cluster_name_of(obj), str)
    assert isinstance(paused_by((obj,)), str)
    cluster_key_of(MACHINE, obj)
    recorded_secret(obj)
    controller_of(obj)
    references_with(obj, {"uid": "u"})
    references_without(obj, "u")
    assert isinstance(uid_of(obj), str)
    assert isinstance(generation_of(obj), int)
    assert isinstance(labels_of(obj), dict)
    selects(obj, {"a": "b"})
    read(obj)
    find(status, "Ready")
    merge(status, (), 1, NOW)
    parse_time(status)
    for indexers in INDEXES.values():
        for indexer in indexers.values():
            value = indexer(obj)
            assert value is None or isinstance(value, str)


def test_an_unknown_template_on_a_machine_names_no_cluster() -> None:
    body = machine("m").build()
    for odd in ([1], "x", 5, {"spec": [1]}, {"metadata": {"labels": "x"}}, {"spec": {"clusterName": ["c"]}}):
        body["spec"]["template"] = odd
        assert cluster_name_of(body) == ""


# -- the door of the cache


def test_parts_of_a_wrong_type_are_left_out_and_all_else_stays() -> None:
    body = node("n").ready().build()
    body["metadata"]["labels"] = {"a": "b", "c": 5}
    body["metadata"]["ownerReferences"] = "me"
    body.setdefault("spec", {})["taints"] = [None, "x", {"key": "k", "effect": "NoSchedule"}]
    body["status"]["conditions"].append("Ready")
    found = kept(NODE, body)
    assert found["metadata"]["labels"] == {"a": "b"}
    assert "ownerReferences" not in found["metadata"]
    assert found["spec"]["taints"] == [{"key": "k", "effect": "NoSchedule"}]
    assert [each["type"] for each in found["status"]["conditions"]] == ["Ready"]


def test_a_right_object_is_kept_as_it_is() -> None:
    for body in hostile.world():
        store = Store(hostile.kind_of(body))
        store.watched("ADDED", copy.deepcopy(body))
        assert not store.faults(key_of(body)), body["kind"]
        if body["kind"] != "Pod":
            assert store.get(key_of(body)) == body


def test_faults_of_a_spec_are_remembered_until_it_is_corrected() -> None:
    store, body = Store(MACHINE_DEPLOYMENT), machine_deployment("md").build()
    wrong = copy.deepcopy(body)
    wrong["spec"]["replicas"] = "5"
    wrong["metadata"]["resourceVersion"] = "1"
    store.watched("ADDED", wrong)
    assert store.faults(key_of(body)) == ("spec.replicas: must be an integer of 64 bits",)
    body["metadata"]["resourceVersion"] = "2"
    store.watched("MODIFIED", body)
    assert store.faults(key_of(body)) == ()


def test_a_status_of_a_wrong_type_is_no_fault_of_a_person() -> None:
    store, body = Store(MACHINE_SET), machine_set("ms").build()
    body["status"] = {"replicas": "many", "conditions": {"Ready": True}}
    store.watched("ADDED", body)
    assert store.faults(MS) == ()
    assert store.get(MS)["status"] == {}  # type: ignore[index]


def test_a_pause_of_a_wrong_type_is_a_pause() -> None:
    body = cluster("c").build()
    body["spec"]["paused"] = "true"
    found = kept(CLUSTER, body)
    assert paused_by((found,))


def test_a_value_nested_without_end_is_left_out() -> None:
    body = machine("m").build()
    body["spec"]["unknown"] = hostile.deep(5000)
    body["spec"]["providerConfig"]["value"]["deep"] = hostile.deep(900)
    store = Store(MACHINE)
    store.watched("ADDED", body)
    found = store.get(key_of(body))
    assert found is not None
    assert "unknown" not in found["spec"]
    assert found == copy.deepcopy(found)


@pytest.mark.parametrize(
    "broken",
    [None, 5, [], {}, {"metadata": None}, {"metadata": []}, {"metadata": {"name": ""}}, {"metadata": {"name": 5}},
     {"metadata": {"name": "x", "namespace": []}}, {"metadata": {"name": "x", "uid": {}}}],
)  # fmt: skip
def test_what_has_no_readable_name_is_passed_over(broken: Any) -> None:
    store = Store(MACHINE)
    good = machine("good").build()
    assert [change.key.name for change in store.replace([broken, good, broken], "5")] == ["good"]
    assert store.watched("MODIFIED", broken) == []
    assert store.watched("DELETED", broken) == []
    assert len(store) == 1


def test_a_listener_that_fails_stops_neither_the_others_nor_the_watch() -> None:
    cache, heard = Cache([MACHINE]), []

    def fails(_change: Change, _from_list: bool) -> None:
        raise ZeroDivisionError("a bug")

    cache.listen(MACHINE, fails)
    cache.listen(MACHINE, lambda change, _from_list: heard.append(change.key.name))
    cache.watched(MACHINE, "ADDED", machine("m").build())
    assert heard == ["m"]


def test_an_index_function_that_fails_files_the_others() -> None:
    def index(obj: Any) -> str | None:
        if obj["metadata"]["name"] == "bad":
            raise ZeroDivisionError("a bug")
        return "x"

    store = Store(MACHINE, {"i": index})
    store.indexed("i", "x")
    store.watched("ADDED", machine("bad").build())
    store.watched("ADDED", machine("good").build())
    assert [key_of(obj).name for obj in store.indexed("i", "x")] == ["good"]
    assert store.get(Key("default", "bad")) is not None


def test_pods_and_budgets_of_another_server_lose_what_is_of_a_wrong_type() -> None:
    pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [5, {"name": "c", "resources": []}],
           "nodeName": ["x"], "volumes": {"a": 1}, "tolerations": "all"}, "status": {"phase": 7}}  # fmt: skip
    found = kept(POD, pod)
    assert found["spec"]["containers"] == [{"name": "c"}]
    assert "nodeName" not in found["spec"]
    assert "phase" not in found["status"]
    budget = {"metadata": {"name": "b", "namespace": "n"}, "spec": [1], "status": {"disruptionsAllowed": "1"}}
    assert kept(POD_DISRUPTION_BUDGET, budget)["status"] == {}


# -- the condition


def condition_of(s: Stage, key: Key = MS) -> Any:
    obj = s.cache.stores[MACHINE_SET].get(key)
    return find((obj or {}).get("status", {}).get("conditions"), RECONCILED)


@story
async def test_a_spec_of_a_wrong_type_is_said_on_the_object_and_not_acted_on(stage: Any) -> None:
    s = stage(lambda _key, _hosts: Plan())
    body = machine_set("ms").build()
    body["spec"]["replicas"] = {"many": True}
    s.show(MACHINE_SET, body, "ADDED")
    await s.quiet()
    assert s.reconciles == 0
    said = condition_of(s)
    assert (said["status"], said["reason"]) == ("False", Reason.MALFORMED_SPEC)
    assert "spec.replicas" in said["message"]
    good = machine_set("ms").build()
    good["status"] = copy.deepcopy(s.cache.stores[MACHINE_SET].get(MS)["status"])
    good["metadata"]["resourceVersion"] = "5000"
    s.api.version = 6000
    s.show(MACHINE_SET, good)
    await s.quiet()
    assert s.reconciles == 1
    assert condition_of(s) is None
    assert len(s.api.patches) == 2


@story
async def test_one_that_goes_is_reconciled_whatever_its_spec(stage: Any) -> None:
    s = stage(lambda _key, _hosts: Plan())
    body = machine_set("ms").build()
    body["spec"]["replicas"] = "x"
    body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    s.show(MACHINE_SET, body, "ADDED")
    await s.quiet()
    assert s.reconciles == 1


@story
async def test_a_reconcile_that_raises_is_said_once_on_the_object_without_the_text_of_the_exception(
    stage: Any,
) -> None:
    failing_for = {"ms"}

    def decide(key: Key, _hosts: Any) -> Plan:
        if key.name in failing_for:
            raise ValueError("token=abcdef")
        return Plan()

    s = stage(decide)
    s.show(MACHINE_SET, machine_set("ms"), "ADDED")
    s.show(MACHINE_SET, machine_set("other"), "ADDED")
    await asyncio.sleep(30)
    said = condition_of(s)
    assert said["reason"] == Reason.RECONCILE_FAILED
    assert "ValueError" in said["message"]
    assert "abcdef" not in said["message"]
    assert condition_of(s, Key("default", "other")) is None
    assert len(s.api.patches) == 1, "it is written once, not at each try"
    failing_for.clear()
    await asyncio.sleep(300)
    assert condition_of(s) is None


def test_a_kind_without_conditions_gets_an_event() -> None:
    body = {"metadata": {"name": "c", "namespace": "n", "uid": "u"}}
    said = failing.condition_of(ZeroDivisionError(), "autoscaler")
    (event,) = failing.saying(CONFIG_MAP, body, said, NOW)
    assert event.reason == Reason.RECONCILE_FAILED  # type: ignore[union-attr]
