"""Which Machines a MachineSet creates, and what they are born with."""

from __future__ import annotations

from typing import Any

import pytest

from api import names
from controllers.kernel.actions import Create, Patch
from controllers.kernel.names import machine_name, machine_prefix
from controllers.kernel.plan import Blocked, Plan
from controllers.kernel.refs import MACHINE, MACHINE_SET
from tests.builders import FakeView, cluster, machine, machine_deployment, machine_set
from tests.builders.loop import plan_for
from tests.builders.objects import Builder, MachineSetBuilder
from tests.builders.plans import condition_of, created_names, creates, deletes, events, status_of

PREFIX = machine_prefix("pool", "uid-pool")


def pool(replicas: int = 3) -> MachineSetBuilder:
    return machine_set("pool").replicas(replicas)


def member(ordinal: int, of: MachineSetBuilder | None = None) -> Any:
    return machine(machine_name(PREFIX, ordinal)).of(of or pool()).ordinal(ordinal)


def plan(*objects: Builder) -> Plan:
    return plan_for(FakeView(*objects), MACHINE_SET, "pool")


def named(*ordinals: int) -> list[str]:
    return [machine_name(PREFIX, ordinal) for ordinal in ordinals]


CREATED = {
    "a new set gets all of its Machines at once": ((pool(3),), named(0, 1, 2)),
    "only the missing ones are created": ((pool(3).ordinals(2), member(0).ready(), member(1).ready()), named(2)),
    "the replicas default to one": ((pool().replicas(None),), named(0)),
    "none are created for none": ((pool(0),), []),
    "a failed Machine counts, it is replaced by whoever deletes it": (
        (pool(1).ordinals(1), member(0).failed("CreateError", "quota")),
        [],
    ),
    "a deleting Machine does not count": ((pool(1).ordinals(1), member(0).ready().deleting()), named(1)),
    "a number that was given is not given again": ((pool(1).ordinals(7),), named(7)),
    "a reserved Machine that is not visible is created again under its name": (
        (pool(3).ordinals(3, "1"), member(0).ready(), member(2).ready()),
        named(1),
    ),
    "reserved ones that may just be on their way are not": (
        (pool(3).ordinals(3, "0-2"), member(0).created(1)),
        [],
    ),
    "a journal lost in a restore gives no number in use": (
        (pool(2), member(5).ready()),
        named(6),
    ),
    "a Machine of another set does not count": (
        (pool(1), machine("other").of(machine_set("other")).ready()),
        named(0),
    ),
    "an orphan that will be adopted fills a place": ((pool(1), machine("lost").labelled(pool="pool").ready()), []),
}


@pytest.mark.parametrize(("objects", "want"), CREATED.values(), ids=CREATED.keys())
def test_created(objects: tuple[Builder, ...], want: list[str]) -> None:
    found = plan(*objects)
    assert created_names(found) == want
    assert deletes(found) == []


HELD: dict[str, tuple[tuple[Builder, ...], str]] = {
    "the set has the annotation that disables it": ((pool().annotated(names.DISABLE_CREATE_ANNOTATION),), "annotation"),
    "the cluster is being deleted": ((pool().in_cluster("c"), cluster("c").deleting()), "Cluster c is being deleted"),
}


@pytest.mark.parametrize(("objects", "why"), HELD.values(), ids=HELD.keys())
def test_creation_is_held_and_says_why(objects: tuple[Builder, ...], why: str) -> None:
    found = plan(*objects)
    assert creates(found) == []
    assert isinstance(found.outcome, Blocked)
    assert why in found.outcome.why
    assert why in condition_of(found, "ScalingUp")["message"]


SILENT: dict[str, tuple[Builder, ...]] = {
    "the set is paused": (pool().annotated("cluster.x-k8s.io/paused"),),
    "its cluster is paused": (pool().in_cluster("c"), cluster("c").paused()),
    "its deployment is left alone": (
        pool().owned_by(machine_deployment("md")),
        machine_deployment("md").annotated("nodewright.dev/paused"),
    ),
}


@pytest.mark.parametrize("objects", SILENT.values(), ids=SILENT.keys())
def test_a_paused_set_does_nothing_but_say_so(objects: tuple[Builder, ...]) -> None:
    found = plan(*objects)
    assert creates(found) == []
    assert status_of(found).keys() == {"conditions"}
    assert condition_of(found, "Paused")["status"] == "True"


def test_a_deployment_that_pauses_its_rollout_does_not_pause_its_sets() -> None:
    deployment = machine_deployment("md").paused().annotated("cluster.x-k8s.io/paused", "spec.paused")
    assert len(creates(plan(pool(3).owned_by(deployment), deployment))) == 3


def test_a_deleting_set_creates_nothing_even_if_all_its_machines_are_gone() -> None:
    """cluster-api#777: deleting the owner made the set refill what was deleted with it."""
    found = plan(pool(3).deleting())
    assert creates(found) == []
    assert condition_of(found, "Deleting")["status"] == "True"


def test_identities_are_reserved_in_one_guarded_write_before_anything_is_created() -> None:
    first, second, *_ = plan(pool(3).version("77")).steps
    (guard,) = first
    assert isinstance(guard, Patch)
    assert (guard.subresource, guard.resource_version) == ("status", "77")
    assert guard.patch["status"]["ordinals"] == {"next": 3, "reserved": "0-2"}
    assert all(isinstance(action, Create) for action in second), "one step: in parallel"
    assert len(second) == 3


def test_creating_again_is_guarded_too_though_nothing_is_reserved_anew() -> None:
    """A stale view of the set must not bring back what was given up in the meantime."""
    guard = plan(pool(1).ordinals(1, "0").version("77")).steps[0][0]
    assert isinstance(guard, Patch)
    assert guard.resource_version == "77"


def test_a_machine_is_born_with_all_it_will_need() -> None:
    owner = pool(1).in_cluster("prod").labelled({names.DEPLOYMENT_NAME_LABEL: "md"})
    owner.template_label("tier", "gpu").template_annotation("note", "x").node_label("a", "b").taint("t")
    (body,) = creates(plan(owner))
    metadata = body["metadata"]
    assert metadata["finalizers"] == [names.MACHINE_FINALIZER]
    assert metadata["labels"] == {
        "pool": "pool",
        "tier": "gpu",
        names.CLUSTER_NAME_LABEL: "prod",
        names.DEPLOYMENT_NAME_LABEL: "md",
        names.MACHINESET_NAME_LABEL: "pool",
    }
    assert metadata["annotations"]["note"] == "x"
    assert metadata["annotations"][names.ORDINAL_ANNOTATION] == "0"
    (reference,) = metadata["ownerReferences"]
    assert reference["uid"] == "uid-pool"
    assert reference["controller"]
    assert reference["blockOwnerDeletion"]
    assert body["spec"] == owner.build()["spec"]["template"]["spec"]


def test_a_newborn_machine_needs_no_further_write_from_its_set() -> None:
    owner = pool(1).template_annotation("note", "x").node_label("a", "b").taint("t")
    (body,) = creates(plan(owner))
    newborn = {**body, "metadata": {**body["metadata"], "uid": "u", "creationTimestamp": "2026-06-01T11:00:00Z"}}
    view = FakeView(owner.ordinals(1), newborn)
    found = plan_for(view, MACHINE_SET, "pool")
    assert [a for a in found.actions() if isinstance(a, Patch) and a.target.kind == MACHINE] == []


def test_a_provider_id_in_the_template_is_not_copied_to_every_machine() -> None:
    owner = pool(1)
    owner.template["spec"]["providerID"] = "simulated:///1"
    (body,) = creates(plan(owner))
    assert "providerID" not in body["spec"]


def test_a_batch_makes_one_event() -> None:
    assert events(plan(pool(7))) == [
        f"Created 7 Machines: {', '.join(named(0, 1, 2, 3, 4))} and 2 more",
    ]


def test_a_batch_is_bounded() -> None:
    assert len(creates(plan(pool(2500)))) == 1000


def test_nothing_is_decided_on_a_world_that_is_not_completely_read() -> None:
    view = FakeView(pool(3)).incomplete(MACHINE)
    assert plan_for(view, MACHINE_SET, "pool").steps == ()


def test_a_reserved_name_that_belongs_to_somebody_else_is_given_up() -> None:
    """Released right after its birth: it is not ours any more, and must be neither made again nor deleted."""
    foreign = member(0).orphan().labelled(pool="aside").annotated("nodewright.dev/released-from", "uid-pool")
    assert created_names(plan(pool(1).ordinals(1, "0"), foreign)) == named(1)
    assert deletes(plan(pool(0).ordinals(1, "0").observed(), foreign)) == []
