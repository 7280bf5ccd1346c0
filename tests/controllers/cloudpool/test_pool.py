"""What a cloudpool client may ask of a set, as plans."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from api import names
from controllers.cloudpool.changes import (
    Answer,
    Forbidden,
    Illegal,
    NotMember,
    NotYet,
    attach,
    detach,
    resize,
    set_membership,
    terminate,
)
from controllers.cloudpool.messages import Membership, MessageError, PoolSize, desired_size_of, read_pool, read_size
from controllers.cloudpool.pool import MARK, MOST_PLACEHOLDERS, Pool, observe
from controllers.cloudpool.unfinished import leave_attaching, settle
from controllers.kernel.actions import Action, Delete, Patch, Scale
from controllers.kernel.plan import Plan
from controllers.kernel.refs import MACHINE_DEPLOYMENT, MACHINE_SET, Key
from tests.builders.objects import machine, machine_deployment, machine_set, owner_reference
from tests.builders.view import FakeView


def pool_of(replicas: int, *machines: dict[str, Any], aside: str = "", **spec: Any) -> Pool:
    """``aside``: names of the Machines for which ``replicas`` is one more."""
    body = machine_set("ms").build()
    body["metadata"]["annotations"] = {names.CLOUDPOOL_SET_ASIDE_ANNOTATION: aside} if aside else {}
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
                if "replicas" in (patch.get("spec") or {}):
                    assert action.resource_version, "a blind write of replicas"
                    listed = annotations.get(names.CLOUDPOOL_SET_ASIDE_ANNOTATION, "")
                    words.append(f"scale {patch['spec']['replicas']} for {listed}")
                    continue
                mark = annotations.get(names.DELETE_MACHINE_ANNOTATION, "-")
                words.append(f"{ {MARK: 'mark', None: 'unmark'}.get(mark, 'patch') } {target.key.name}")
            case _:
                raise AssertionError(action)
    return words


def actions(answer: Answer) -> list[Action]:
    assert isinstance(answer, Plan), answer
    return list(answer.actions())


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


def test_terminating_twice_lowers_the_size_once() -> None:
    marked = running("a", **{names.DELETE_MACHINE_ANNOTATION: MARK})
    assert told(terminate(pool_of(1, marked, running("b")), "a", True)) == [], "the set is about to take it"
    assert told(terminate(pool_of(2, marked, running("b")), "a", True)) == ["scale 1"], "it died before the size"


def test_no_further_machine_is_marked_while_one_is_yet_to_go() -> None:
    marked = running("a", **{names.DELETE_MACHINE_ANNOTATION: MARK})
    assert isinstance(terminate(pool_of(1, marked, running("b")), "b", True), NotYet)
    assert told(terminate(pool_of(1, marked, running("b")), "b", False)) == ["delete b"]
    assert told(terminate(pool_of(2, marked, running("b")), "b", True)) == ["mark b", "scale 1"]


def test_a_machine_that_a_person_marked_would_go_in_place_of_the_named_one() -> None:
    persons = running("a", **{names.DELETE_MACHINE_ANNOTATION: "yes"})
    pool = pool_of(3, persons, running("b"), running("c"))
    refused = terminate(pool, "b", True)
    assert isinstance(refused, Forbidden)
    assert "Machine a of" in refused.why
    assert "is marked to go first" in refused.why
    assert told(terminate(pool, "a", True)) == ["scale 2"], "the person's mark is enough"
    assert told(terminate(pool, "b", False)) == ["delete b"]


def test_a_machine_that_is_set_aside_is_worked_for_by_another_one() -> None:
    pool = pool_of(2, running("a"), running("b"))
    assert told(set_membership(pool, "a", Membership(False, False))) == ["patch a"]
    said = pool_of(2, running("a", **ASIDE), running("b"))
    assert said.size == PoolSize(2, 2, 1), "the size is right before anything else is written"
    assert told(settle(said)) == ["scale 3 for a"]
    after = pool_of(3, running("a", **ASIDE), running("b"), running("c"), aside="a")
    assert after.size == PoolSize(2, 3, 2)
    assert told(settle(after)) == []
    assert told(resize(after, 1)) in (["mark b", "scale 2"], ["mark c", "scale 2"])
    assert told(set_membership(after, "a", Membership(True, True))) == ["patch a"]
    back = pool_of(3, running("a"), running("b"), running("c"), aside="a")
    assert back.size == PoolSize(2, 3, 3)
    mark, size = told(settle(back))
    assert mark.startswith("mark ")
    assert size == "scale 2 for None"


def test_a_machine_that_was_set_aside_and_is_gone_has_nobody_in_its_place() -> None:
    pool = pool_of(3, running("b"), running("c"), aside="a")
    assert pool.size == PoolSize(2, 3, 3)
    assert told(settle(pool)) == ["scale 2 for None"]


def test_a_machine_that_is_set_aside_and_fails_keeps_its_place() -> None:
    failed = machine("a").build()
    failed["metadata"]["annotations"] = ASIDE
    failed["status"] = {"errorReason": "InvalidConfiguration"}
    assert told(settle(pool_of(2, failed, running("b"), aside="a"))) == []


def test_a_machine_that_is_given_up_is_deleted_and_replaced() -> None:
    assert told(set_membership(pool_of(1, running("a")), "a", Membership(False, True))) == ["patch a"]
    said = {names.CLOUDPOOL_MEMBERSHIP_ANNOTATION: '{"active":false,"evictable":true}'}
    assert told(settle(pool_of(1, running("a", **said)))) == ["delete a"]


def test_of_a_machine_that_was_set_aside_and_then_given_up_the_one_in_its_place_stays() -> None:
    said = {names.CLOUDPOOL_MEMBERSHIP_ANNOTATION: '{"active":false,"evictable":true}'}
    for name in ("a", "b"):  # whatever the set's own order
        machines = [running(each, **(said if each == name else {})) for each in ("a", "b")]
        assert told(settle(pool_of(2, *machines, aside=name))) == [f"mark {name}", "scale 1 for None"]
        assert told(settle(pool_of(1, *machines))) == [f"delete {name}"]


def test_detaching_takes_owner_and_labels_but_not_the_clusters() -> None:
    pool = pool_of(1, running("a"))
    answer = detach(pool, "a", False)
    assert isinstance(answer, Plan)
    (patch,) = answer.actions()
    assert isinstance(patch, Patch)
    assert patch.patch["metadata"] == {"labels": {"pool": None}, "ownerReferences": []}
    bound = pool_of(1, running("a"), selector={"matchLabels": {names.CLUSTER_NAME_LABEL: "c"}})
    bound.members[0].facts.body["metadata"]["labels"][names.CLUSTER_NAME_LABEL] = "c"  # type: ignore[index]
    assert isinstance(detach(bound, "a", False), Illegal)


def test_the_pool_is_one_less_for_each_detached_machine_and_only_once() -> None:
    pool = pool_of(2, running("a"), running("b"))
    answer = detach(pool, "a", True)
    assert isinstance(answer, Plan)
    (release,) = answer.actions()
    assert isinstance(release, Patch)
    said = release.patch["metadata"]["annotations"]
    number = said[names.CLOUDPOOL_DETACHED_FROM_ANNOTATION].partition("/")[2]
    stray = running("a", **said)
    left = replace(pool_of(2, running("b")), detached=(stray,))
    assert told(settle(left)) == ["scale 1 for "]
    done = replace(pool_of(1, running("b")), detached=(running("z", **said), stray))
    done.body["metadata"]["annotations"] = {names.CLOUDPOOL_DETACHED_ANNOTATION: f"a/{number}"}
    assert told(settle(done)) == ["patch a"], "what is accounted for is forgotten before another one is"


def test_attaching_bars_new_machines_in_the_write_that_makes_the_set_larger() -> None:
    pool, alone = pool_of(1, running("a")), running("stray")
    grow, take, unbar = actions(attach(pool, alone, "stray"))
    assert isinstance(grow, Patch)
    assert grow.patch["spec"] == {"replicas": 2}
    assert grow.patch["metadata"]["annotations"] == {names.DISABLE_CREATE_ANNOTATION: f"{MARK}/stray"}
    assert isinstance(take, Patch)
    assert take.patch["metadata"]["labels"] == {"pool": "ms"}
    assert isinstance(unbar, Patch)
    assert isinstance(attach(pool, None, "nobody"), NotMember)


def test_attaching_that_was_interrupted_is_taken_up_or_taken_back() -> None:
    barred = pool_of(2, running("a"))
    barred.body["metadata"]["annotations"] = {names.DISABLE_CREATE_ANNOTATION: f"{MARK}/stray"}
    assert len(actions(attach(barred, running("stray"), "stray"))) == 2, "it has grown already"
    other = actions(attach(barred, running("other"), "other"))[0]
    assert isinstance(other, Patch)
    assert other.patch["spec"] == {"replicas": 2}, "in the place that the first one never took"
    assert told(leave_attaching(barred)) == ["scale 1 for "]
    taken = pool_of(2, running("a"), running("stray"))
    taken.body["metadata"]["annotations"] = barred.body["metadata"]["annotations"]
    member = taken.members[1].facts.body
    assert told(attach(taken, member, "stray")) == ["patch ms"]
    assert told(leave_attaching(taken)) == ["patch ms"]
    assert told(attach(pool_of(2, running("a"), running("stray")), member, "stray")) == [], "it is there already"


def test_what_can_not_be_attached_is_told_with_what_to_do_instead() -> None:
    owned = running("owned")
    owned["metadata"]["ownerReferences"] = [owner_reference(machine_set("other"))]
    leaving = running("x", **{names.CLOUDPOOL_DETACHED_FROM_ANNOTATION: "uid/7"})
    of_deployment = pool_of(1)
    of_deployment.body["metadata"]["ownerReferences"] = [owner_reference(machine_deployment("md"))]
    choosy = pool_of(1, selector={"matchExpressions": [{"key": "pool", "operator": "Exists"}]})
    for pool, body, why in (
        (pool_of(1), owned, "it belongs to MachineSet other"),
        (pool_of(1), leaving, "still being detached"),
        (of_deployment, running("x"), "is set by MachineDeployment md"),
        (choosy, running("x"), "has expressions"),
    ):
        found = attach(pool, body, "x")
        assert isinstance(found, Illegal)
        assert why in found.why
        assert found.instead


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
    refused = attach(pool, running("x"), "x")
    assert isinstance(refused, Illegal)
    assert "makes all of its Machines itself" in refused.why
    assert observe(MACHINE_DEPLOYMENT, Key("default", "gone"), FakeView(body, *sets, *machines)) is None


@pytest.mark.parametrize(
    "body",
    [None, [], {}, {"machines": {}}, {"machines": [{}]},
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


@pytest.mark.parametrize("state", ["ODD", "running", "RUNNING "])
def test_a_machine_in_an_unknown_state_is_counted_and_never_goes(state: str) -> None:
    (found,) = read_pool({"machines": [{"id": "a", "machineState": state, "membershipStatus": {}}]})
    assert found.active
    assert "machineState" in found.doubt


def test_a_doubled_id_is_one_machine_that_never_goes() -> None:
    bodies = [
        {"id": id_, "machineState": state} for id_, state in (("a", "TERMINATED"), ("b", "RUNNING"), ("a", "RUNNING"))
    ]
    found = {each.id: each for each in read_pool({"machines": bodies})}
    assert (len(found), found["a"].active, found["b"].doubt) == (2, True, "")
    assert found["a"].doubt == "2 machines of the pool have its id"


def deployment_pool(*owners: str, generations: tuple[int, int] = (1, 1), **annotations: str) -> Pool:
    """One running Machine of each of these MachineSets of a MachineDeployment."""
    body = machine_deployment("md").build()
    body["spec"] |= {"replicas": len(owners)}
    body["metadata"]["generation"] = generations[0]
    body["status"] = {"observedGeneration": generations[1]}
    objects = []
    for number, name in enumerate(owners):
        owner = machine_set(name).build()
        owner["metadata"]["ownerReferences"] = [owner_reference(body)]
        one = running(f"m{number}", **annotations)
        one["metadata"]["ownerReferences"] = [owner_reference(owner)]
        objects += [owner, one]
    found = observe(MACHINE_DEPLOYMENT, Key("default", "md"), FakeView(body, *objects))
    assert found is not None
    return found


def test_in_a_rollout_no_machine_is_terminated_with_a_smaller_size() -> None:
    pool = deployment_pool("old", "new")
    for _ in range(2):
        answer = terminate(pool, "m0", True)
        assert isinstance(answer, Forbidden)
        assert "a rollout of" in answer.why
    assert isinstance(terminate(pool, "m0", False), Plan), "that one goes, and no other"
    assert isinstance(terminate(deployment_pool("one", "one"), "m0", True), Plan)


def test_a_deployment_that_was_changed_is_waited_for() -> None:
    assert isinstance(terminate(deployment_pool("one", "one", generations=(2, 1)), "m0", True), NotYet)


def test_in_a_rollout_no_smaller_size_takes_a_protected_machine() -> None:
    assert isinstance(resize(deployment_pool("old", "new", **PROTECTED), 1), Forbidden)
    assert isinstance(resize(deployment_pool("old", "new", **PROTECTED), 3), Plan)
    assert isinstance(resize(deployment_pool("old", "new"), 1), Plan)


def failed(name: str) -> dict[str, Any]:
    body = machine(name).build()
    body["status"] = {"phase": "Failed", "errorReason": "CreateError", "errorMessage": "no"}
    return body


def test_a_rejected_machine_can_be_removed_replaced_and_given_up() -> None:
    pool = pool_of(2, running("a"), failed("b"))
    assert [str(each.machine.state) for each in pool.members] == ["RUNNING", "REJECTED"]
    assert isinstance(terminate(pool, "b", True), Plan)
    (step,) = steps_of(terminate(pool, "b", False))
    assert isinstance(step, Delete)
    assert isinstance(set_membership(pool, "b", Membership(False, True)), Plan)


def test_a_failed_or_deleting_machine_is_not_attached() -> None:
    leaving = running("c")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    for body in (failed("b"), leaving):
        assert isinstance(attach(pool_of(1, running("a")), body, body["metadata"]["name"]), Illegal)


def steps_of(answer: Answer) -> list[Action]:
    assert isinstance(answer, Plan)
    return [action for step in answer.steps for action in step]
