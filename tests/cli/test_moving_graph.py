"""Any graph of our objects survives a move unchanged but for UIDs and the references to them."""

from __future__ import annotations

import uuid
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.kernel.refs import (
    CLUSTER,
    MACHINE,
    MACHINE_CLASS,
    MACHINE_DEPLOYMENT,
    MACHINE_HEALTH_CHECK,
    MACHINE_SET,
    SECRET,
    Key,
    Kind,
    uid_of,
)
from nodewright.cli.moving.graph import SSH_HOST_POOL, Item, graph, hindrances
from nodewright.cli.moving.translating import body_of, differences, left_out, rewritten, status_to_be

PROD = Key("default", "prod")
World = dict[Kind, list[dict[str, Any]]]


def thing(
    kind: Kind,
    name: str,
    *owners: dict[str, Any],
    spec: Any = None,
    status: Any = None,
    labels: dict[str, str] | None = None,
    namespace: str = "default",
) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{kind}/{namespace}/{name}")),
        "resourceVersion": "7",
        "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["cluster.k8s.io/held"],
    }
    if labels:
        metadata["labels"] = labels
    if owners:
        metadata["ownerReferences"] = [reference_to(owner) for owner in owners]
    made = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata}
    return made | ({"data": spec or {}} if kind == SECRET else {"spec": spec or {}, "status": status or {}})


def reference_to(owner: dict[str, Any]) -> dict[str, Any]:
    meta = owner["metadata"]
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Clusters prod and other; sets, Machines, Secrets of either; classes, pools and Secrets that both may name."""
    found: World = {CLUSTER: [thing(CLUSTER, "prod"), thing(CLUSTER, "other")]}
    found[MACHINE_CLASS] = [thing(MACHINE_CLASS, f"class-{n}") for n in range(2)]
    found[SSH_HOST_POOL] = [thing(SSH_HOST_POOL, "racks", spec={"secretName": "key"})]
    found[SECRET] = [
        thing(SECRET, name) for name in ("key", "cloud", "stray", "prod-kubeconfig", "prod-ca", "other-ca")
    ]
    found[MACHINE_SET], found[MACHINE], found[MACHINE_DEPLOYMENT], found[MACHINE_HEALTH_CHECK] = [], [], [], []
    for number in range(draw(st.integers(0, 4))):
        cluster = draw(st.sampled_from(["prod", "other", ""]))
        config = draw(
            st.sampled_from([{"value": {"pool": "racks"}}, {"value": {"cloud": {"secretName": "cloud"}}}, {}])
        )
        class_ = {"valueFrom": {"machineClass": {"name": "class-0"}}} if draw(st.booleans()) else config
        spec = {"clusterName": cluster, "providerConfig": class_}
        top = thing(MACHINE_DEPLOYMENT, f"md-{number}", spec={"template": {"spec": spec}})
        owner = [top] if draw(st.booleans()) else []
        found[MACHINE_DEPLOYMENT] += owner
        middle = thing(MACHINE_SET, f"ms-{number}", *owner, spec={"template": {"spec": spec}})
        middle["status"] = {"replaces": f"before/{uid_of(middle)}", "replicas": number}
        found[MACHINE_SET].append(middle)
        for ordinal in range(draw(st.integers(0, 3))):
            machine = thing(MACHINE, f"m-{number}-{ordinal}", middle, spec={**spec, "providerID": "sim://1"})
            machine["metadata"]["annotations"] = {"nodewright.dev/released-from": uid_of(middle), "mine": "text"}
            machine["status"] = {"nodeRef": {"name": "node", "uid": str(uuid.uuid4())}}
            found[MACHINE].append(machine)
            found[SECRET].append(thing(SECRET, f"data-{number}-{ordinal}", machine, spec={"value": uid_of(machine)}))
    found[MACHINE_HEALTH_CHECK] = [thing(MACHINE_HEALTH_CHECK, "check", spec={"clusterName": "prod"})]
    return {kind: draw(st.permutations(each)) for kind, each in found.items()}


def moved(items: list[Item]) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """What a server makes of them, one after the other, by UID at the source; and the UIDs."""
    target: dict[str, dict[str, Any]] = {}
    uids: dict[str, str] = {}
    for item in items:
        uids[uid_of(item.obj)] = str(uuid.uuid4())
        body = body_of(item.obj, uids)
        body["metadata"] |= {"uid": uids[uid_of(item.obj)], "resourceVersion": "1", "generation": 1}
        target[uid_of(item.obj)] = body
    for item in items:  # once all UIDs are known: a ledger may name what came later
        body = target[uid_of(item.obj)]
        body["metadata"] |= body_of(item.obj, uids)["metadata"]
        status = status_to_be(item.obj, uids)
        if status is not None:
            body["status"] = status
    return target, uids


@given(world=worlds())
@settings(deadline=None)
def test_a_graph_survives_unchanged_but_for_uids(world: World) -> None:
    items = graph(world, PROD)
    target, uids = moved(items)
    assert [differences(item.obj, target[uid_of(item.obj)], uids) for item in items] == [[] for _ in items]
    back = {new: old for old, new in uids.items()}
    for item in items:
        there = target[uid_of(item.obj)]
        home = body_of(there, back)
        assert home == body_of(item.obj, {old: old for old in uids})
        assert rewritten(there.get("status"), back) == item.obj.get("status")
        assert there.get("data") == item.obj.get("data")
        text = str({**there, "data": None, "spec": None})
        assert not [old for old in uids if old in text]


@given(world=worlds())
@settings(deadline=None)
def test_all_of_the_cluster_moves_owners_first_and_nothing_of_others(world: World) -> None:
    items = graph(world, PROD)
    names = [item.obj["metadata"]["name"] for item in items]
    assert names[0] == "prod" or items[0].kind != MACHINE
    assert {"prod", "prod-ca", "prod-kubeconfig", "check"} <= set(names)
    assert not {"other", "other-ca", "stray"} & set(names)
    for kind in (MACHINE_SET, MACHINE):
        of_prod = {o["metadata"]["name"] for o in world[kind] if "prod" in str(o["spec"])}
        assert {item.obj["metadata"]["name"] for item in items if item.kind == kind} == of_prod
    made: set[str] = set()
    for item in items:
        owners = {each["uid"] for each in item.obj["metadata"].get("ownerReferences", ())}
        assert owners <= made
        assert left_out(item.obj, dict.fromkeys(made, "")) == []
        made.add(uid_of(item.obj))
    assert {item.kind for item in items if item.shared} <= {SECRET, MACHINE_CLASS, SSH_HOST_POOL}


@given(world=worlds())
@settings(deadline=None)
def test_the_order_is_the_same_each_time(world: World) -> None:
    first, second = graph(world, PROD), graph(world, PROD)
    assert [uid_of(item.obj) for item in first] == [uid_of(item.obj) for item in second]


def test_what_a_shared_object_names_comes_along_and_stays_too() -> None:
    machine = thing(MACHINE, "m", spec={"clusterName": "prod", "providerConfig": {"value": {"pool": "racks"}}})
    pool, key = thing(SSH_HOST_POOL, "racks", spec={"secretName": "key"}), thing(SECRET, "key")
    world: World = {CLUSTER: [thing(CLUSTER, "prod")], MACHINE: [machine], SSH_HOST_POOL: [pool], SECRET: [key]}
    shared = {item.obj["metadata"]["name"]: item.shared for item in graph(world, PROD)}
    assert shared == {"prod": False, "m": False, "racks": True, "key": True}


def test_an_owner_that_stays_is_left_out_and_told() -> None:
    stranger = thing(SECRET, "stranger")
    machine = thing(MACHINE, "m", stranger, spec={"clusterName": "prod"})
    assert "ownerReferences" not in body_of(machine, {})["metadata"]
    assert left_out(machine, {}) == ["Secret stranger"]


def test_owners_in_a_circle_end_the_order_and_not_the_program() -> None:
    one, two = thing(MACHINE_SET, "one", spec={"clusterName": "prod"}), thing(MACHINE_SET, "two")
    one["metadata"]["ownerReferences"] = [reference_to(two)]
    two["metadata"]["ownerReferences"] = [reference_to(one)]
    items = graph({CLUSTER: [thing(CLUSTER, "prod")], MACHINE_SET: [one, two]}, PROD)
    assert [item.obj["metadata"]["name"] for item in items] == ["prod", "one", "two"]


def test_nothing_moves_without_its_cluster_or_out_of_another_namespace() -> None:
    machine = thing(MACHINE, "m", spec={"clusterName": "prod"}, namespace="b")
    assert graph({MACHINE: [thing(MACHINE, "m", spec={"clusterName": "prod"})]}, PROD) == []
    assert [item.kind for item in graph({CLUSTER: [thing(CLUSTER, "prod")], MACHINE: [machine]}, PROD)] == [CLUSTER]


def test_what_is_under_way_is_named() -> None:
    young = thing(MACHINE, "young", spec={"clusterName": "prod"})
    done = {"nodeRef": {"name": "n"}}
    old = thing(MACHINE, "old", spec={"clusterName": "prod", "providerID": "x"}, status=done)
    replaced = thing(
        MACHINE, "sick", spec={"clusterName": "prod", "providerID": "x"}, status={**done, "replacement": {"step": "a"}}
    )
    going = thing(MACHINE_DEPLOYMENT, "going", spec={"clusterName": "prod"})
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    promising = thing(MACHINE_SET, "set", spec={"clusterName": "prod"}, status={"ordinals": {"reserved": "4-6"}})
    kinds = [
        (MACHINE, young),
        (MACHINE, old),
        (MACHINE, replaced),
        (MACHINE_DEPLOYMENT, going),
        (MACHINE_SET, promising),
    ]
    assert hindrances(Item(kind, obj) for kind, obj in kinds) == [
        "Machine default/young: its host is in the making",
        "Machine default/sick: its host is being replaced",
        "MachineDeployment default/going: is being deleted",
        "MachineSet default/set: Machines that it has promised are not there yet, or some leave",
    ]
