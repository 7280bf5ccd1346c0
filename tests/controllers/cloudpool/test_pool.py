"""What a cloudpool client may ask of a set, as plans."""

from __future__ import annotations

from typing import Any

import pytest

from api import names
from controllers.cloudpool.changes import (
    Answer,
    Forbidden,
    NotMember,
    attach,
    detach,
    resize,
    set_membership,
    terminate,
)
from controllers.cloudpool.messages import Membership, MessageError, PoolSize, desired_size_of, read_pool, read_size
from controllers.cloudpool.pool import MARK, MOST_PLACEHOLDERS, Pool, observe
from controllers.kernel.actions import Delete, Patch, Scale
from controllers.kernel.plan import Plan
from controllers.kernel.refs import MACHINE_DEPLOYMENT, MACHINE_SET, Key
from tests.builders.objects import machine, machine_deployment, machine_set, owner_reference
from tests.builders.view import FakeView


def pool_of(replicas: int, *machines: dict[str, Any], **spec: Any) -> Pool:
    body = machine_set("ms").build()
    body["spec"] |= {"replicas": replicas, "selector": {"matchLabels": {"pool": "ms"}}, **spec}
    for each in machines:
        each["metadata"]["ownerReferences"] = [owner_reference(body)]
        each["metadata"].setdefault("labels", {})["pool"] = "ms"
    found = observe(MACHINE_SET, Key("default", "ms"), FakeView(body, *machines))
    assert found is not None
    return found


def running(name: str, **annotations: str) -> dict[str, Any]:
    body = machine(name).build()
    body["metadata"].setdefault("annotations", {}).update(annotations)
    body["spec"]["providerID"] = f"cloud:///z/{name}-host"
    body["status"] = {
        "nodeRef": {"name": f"node-{name}"},
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }
    return body


PROTECTED = {names.CLOUDPOOL_MEMBERSHIP_ANNOTATION: '{"active":true,"evictable":false}'}
ASIDE = {names.CLOUDPOOL_MEMBERSHIP_ANNOTATION: '{"active":false,"evictable":false}'}


def told(answer: Answer) -> list[str]:
    """Each action in a few words."""
    assert isinstance(answer, Plan), answer
    words = []
    for action in answer.actions():
        match action:
            case Scale(replicas=replicas, resource_version=version):
                assert version, "a blind write of replicas"
                words.append(f"scale {replicas}")
            case Delete(target=target):
                words.append(f"delete {target.key.name}")
            case Patch(target=target, patch=patch):
                annotations = (patch.get("metadata") or {}).get("annotations") or {}
                mark = annotations.get(names.DELETE_MACHINE_ANNOTATION, "-")
                words.append(f"{ {MARK: 'mark', None: 'unmark'}.get(mark, 'patch') } {target.key.name}")
            case _:
                raise AssertionError(action)
    return words


def test_states_and_sizes() -> None:
    waiting, made, failed, going = (machine(name).build() for name in ("waiting", "made", "failed", "going"))
    made["spec"]["providerID"] = "cloud:///z/1"
    failed["status"] = {"errorReason": "InvalidConfiguration"}
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    pool = pool_of(6, running("r"), waiting, made, failed, going)
    states = {m.id: str(m.state) for m in pool.machines}
    assert states == {
        "r": "RUNNING", "waiting": "REQUESTED", "made": "PENDING", "failed": "REJECTED", "going": "TERMINATING",
        "ms-requested-0": "REQUESTED", "ms-requested-1": "REQUESTED",
    }  # fmt: skip
    assert pool.size == PoolSize(6, 5, 5)


def test_a_size_beyond_all_measure_costs_no_memory() -> None:
    pool = pool_of(2_000_000_000)
    assert pool.size == PoolSize(2_000_000_000, 2_000_000_000, 2_000_000_000)
    assert len(pool.machines) == MOST_PLACEHOLDERS


def test_a_smaller_size_marks_exactly_as_many_as_go_and_those_without_a_node_first() -> None:
    pool = pool_of(3, running("a"), running("b"), machine("c").build())
    assert told(resize(pool, 2)) == ["mark c", "scale 2"]
    assert told(resize(pool, 3)) == []
    assert told(resize(pool, 5)) == ["scale 5"]


def test_machines_that_are_not_made_yet_go_without_a_mark() -> None:
    assert told(resize(pool_of(4, running("a"), running("b")), 2)) == ["scale 2"]
    assert told(terminate(pool_of(2, running("a")), "ms-requested-0", True)) == ["scale 1"]
    assert told(terminate(pool_of(2, running("a")), "ms-requested-0", False)) == []


def test_protected_machines_are_never_marked_though_more_are_left_then() -> None:
    pool = pool_of(2, running("a", **PROTECTED), running("b"))
    assert told(resize(pool, 0)) == ["mark b", "scale 1"]
    assert isinstance(resize(pool, 0), Plan)
    assert resize(pool, 0).notes == ("1 more are protected by their membership status",)
    assert isinstance(terminate(pool, "a", True), Forbidden)


def test_a_stale_mark_is_taken_back_when_nobody_has_to_go() -> None:
    marked = running("a", **{names.DELETE_MACHINE_ANNOTATION: MARK})
    assert told(resize(pool_of(2, marked, running("b")), 2)) == ["unmark a"]
    assert told(resize(pool_of(1, marked, running("b")), 1)) == [], "the set is about to take it"
    persons = running("a", **{names.DELETE_MACHINE_ANNOTATION: "yes"})
    assert told(resize(pool_of(2, persons, running("b")), 2)) == []


def test_terminating_marks_and_lowers_or_deletes() -> None:
    pool = pool_of(2, running("a"), running("b"))
    assert told(terminate(pool, "b", True)) == ["mark b", "scale 1"]
    assert told(terminate(pool, "b", False)) == ["delete b"]
    assert told(terminate(pool, "cloud:///z/a-host", True)) == ["mark a", "scale 1"]
    assert told(terminate(pool, "a-host", True)) == ["mark a", "scale 1"]
    assert isinstance(terminate(pool, "nobody", True), NotMember)


def test_a_machine_that_is_set_aside_is_worked_for_by_another_one() -> None:
    pool = pool_of(2, running("a"), running("b"))
    assert told(set_membership(pool, "a", Membership(False, False))) == ["scale 3", "patch a"]
    after = pool_of(3, running("a", **ASIDE), running("b"), running("c"))
    assert after.size == PoolSize(2, 3, 2)
    assert told(resize(after, 1)) in (["mark b", "scale 2"], ["mark c", "scale 2"])
    back = told(set_membership(after, "a", Membership(True, True)))
    assert back[1:] == ["scale 2", "patch a"]
    assert back[0].startswith("mark ")
    assert told(set_membership(pool, "a", Membership(False, True))) == ["patch a", "delete a"]


def test_detaching_takes_owner_and_labels_but_not_the_clusters() -> None:
    pool = pool_of(1, running("a"))
    answer = detach(pool, "a")
    assert isinstance(answer, Plan)
    (patch,) = answer.actions()
    assert isinstance(patch, Patch)
    assert patch.patch["metadata"] == {"labels": {"pool": None}, "ownerReferences": []}
    bound = pool_of(1, running("a"), selector={"matchLabels": {names.CLUSTER_NAME_LABEL: "c"}})
    bound.members[0].facts.body["metadata"]["labels"][names.CLUSTER_NAME_LABEL] = "c"  # type: ignore[index]
    assert isinstance(detach(bound, "a"), Forbidden)


def test_attaching_bars_new_machines_in_the_write_that_makes_the_set_larger() -> None:
    pool, alone = pool_of(1, running("a")), running("stray")
    answer = attach(pool, alone, "stray")
    assert isinstance(answer, Plan)
    grow, take, unbar = answer.actions()
    assert isinstance(grow, Patch)
    assert grow.patch["spec"] == {"replicas": 2}
    assert grow.patch["metadata"]["annotations"] == {names.DISABLE_CREATE_ANNOTATION: MARK}
    assert isinstance(take, Patch)
    assert take.patch["metadata"]["labels"] == {"pool": "ms"}
    assert isinstance(unbar, Patch)
    barred = pool_of(2, running("a"))
    barred.body["metadata"]["annotations"] = {names.DISABLE_CREATE_ANNOTATION: MARK}  # type: ignore[index]
    again = attach(barred, alone, "stray")
    assert isinstance(again, Plan)
    assert len(list(again.actions())) == 2, "it has grown already"
    owned = running("owned")
    owned["metadata"]["ownerReferences"] = [owner_reference(machine_set("other"))]
    assert isinstance(attach(pool, owned, "owned"), Forbidden)
    assert isinstance(attach(pool, None, "nobody"), NotMember)


def test_a_machine_deployment_has_the_machines_of_all_its_sets() -> None:
    body = machine_deployment("md").build()
    body["spec"]["replicas"] = 2
    sets, machines = [], []
    for name in ("old", "new"):
        found = machine_set(name).build()
        found["metadata"]["ownerReferences"] = [owner_reference(body)]
        one = running(f"m-{name}")
        one["metadata"]["ownerReferences"] = [owner_reference(found)]
        sets.append(found)
        machines.append(one)
    pool = observe(MACHINE_DEPLOYMENT, Key("default", "md"), FakeView(body, *sets, *machines))
    assert pool is not None
    assert {m.id for m in pool.machines} == {"m-old", "m-new"}
    assert isinstance(attach(pool, running("x"), "x"), Forbidden)
    assert observe(MACHINE_DEPLOYMENT, Key("default", "gone"), FakeView(body, *sets, *machines)) is None


@pytest.mark.parametrize(
    "body",
    [None, [], {}, {"machines": {}}, {"machines": [{}]}, {"machines": [{"id": "a", "machineState": "ODD"}]},
     {"machines": [{"id": "a", "machineState": "RUNNING"}] * 2},
     {"machines": [{"id": "a", "machineState": "RUNNING", "membershipStatus": {"active": "yes"}}]}],
)  # fmt: skip
def test_a_pool_that_is_none_is_named(body: Any) -> None:
    with pytest.raises(MessageError):
        read_pool(body)


def test_a_machine_whose_membership_is_not_told_is_protected() -> None:
    (found,) = read_pool({"machines": [{"id": "a", "machineState": "RUNNING"}]})
    assert found.membership == Membership(active=True, evictable=False)


@pytest.mark.parametrize("body", [{}, {"desiredSize": -1, "allocated": 0, "active": 0}, {"desiredSize": True}])
def test_a_size_that_is_none_is_named(body: Any) -> None:
    with pytest.raises(MessageError):
        read_size(body)


def test_a_desired_size_is_a_whole_number() -> None:
    assert desired_size_of(b'{"desiredsize": 3}') == 3
