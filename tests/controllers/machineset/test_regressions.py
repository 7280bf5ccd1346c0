"""Bugs that peers had; each test names the one it guards against."""

from __future__ import annotations

from controllers.kernel.actions import Create, Delete
from controllers.kernel.plan import Blocked
from controllers.kernel.refs import MACHINE, MACHINE_SET
from tests.builders import World, cluster, machine_set
from tests.builders.loop import plan_for, settle
from tests.builders.plans import condition_of, creates, deletes
from tests.builders.schedule import Process


def settled(replicas: int) -> World:
    world = World(machine_set("pool").replicas(replicas))
    settle(world)
    return world


def scale(world: World, replicas: int) -> None:
    world.change(MACHINE_SET, "pool", lambda body: body["spec"].update(replicas=replicas))


def names(world: World) -> list[str]:
    return sorted(m["metadata"]["name"] for m in world.all(MACHINE) if not m["metadata"].get("deletionTimestamp"))


def test_mc_390_scaling_from_six_to_two_deletes_four_though_the_view_changes_in_between() -> None:
    """machine-controller#390: scaling 6 → 2 removed all six, then made two.

    The deletes are not visible yet when another Machine becomes unready, and so would come first in a new choice.
    """
    world = settled(6)
    process = Process(world)
    scale(world, 2)
    process.catch_up(MACHINE_SET, 1)
    process.round(MACHINE_SET, "pool")
    process.catch_up(MACHINE_SET, 1)
    chosen = deletes(plan_for(process.view(), MACHINE_SET, "pool"))
    survivor = next(name for name in names(world) if name not in chosen)
    world.break_down(survivor)
    process.round(MACHINE_SET, "pool")
    process.catch_up(MACHINE_SET, 1)
    process.catch_up(MACHINE, 1)
    process.round(MACHINE_SET, "pool")
    assert survivor in names(world)
    assert len(names(world)) == 2


def test_mc_390_rounds_on_an_unchanged_old_view_delete_no_further_machine() -> None:
    """The same bug by a view that does not move at all: each round must choose the same four."""
    world = settled(6)
    process = Process(world)
    scale(world, 2)
    for _ in range(4):
        process.catch_up(MACHINE_SET, 5)
        process.round(MACHINE_SET, "pool")
    assert len(names(world)) == 2


def test_mcm_1091_scaling_from_three_to_131_makes_131_with_a_view_that_shows_none_of_them() -> None:
    """machine-controller-manager#1091: 3 → 131 got 43 surplus Machines, since expectations were not consulted."""
    world = settled(3)
    process = Process(world)
    scale(world, 131)
    for _ in range(5):
        process.catch_up(MACHINE_SET, 3)
        process.round(MACHINE_SET, "pool")
        world.advance(60)
    assert len(names(world)) == 131
    settle(world)
    assert len(names(world)) == 131
    assert not [write for write in world.writes if isinstance(write, Delete)]


def test_capi_13649_a_cache_that_stalls_for_an_hour_makes_no_second_machine() -> None:
    """cluster-api#13649: waiting ten seconds for the cache timed out, and everything was made once more."""
    world = World(machine_set("pool").replicas(2))
    process = Process(world)
    for _ in range(3):
        process.round(MACHINE_SET, "pool")
        world.advance(3600)
    assert len(names(world)) == 2, "the set's own old version is refused, so nothing is created on it"
    process.catch_up(MACHINE_SET, 1)
    process.round(MACHINE_SET, "pool")
    assert len(names(world)) == 2, "creating again collides with the names that exist"


def test_a_crash_between_reserving_and_creating_makes_exactly_what_was_reserved() -> None:
    """k0smotron#1534, MCM#1068: a crash in the middle of creating made some Machines twice."""
    for survived in range(5):
        world = World(machine_set("pool").replicas(3))
        world.run(plan_for(world.view(), MACHINE_SET, "pool"), limit=survived)
        settle(world)
        assert len(names(world)) == 3
        ordinals = {name.rsplit("-")[-1] for name in names(world)}
        assert ordinals == {"0", "1", "2"}, f"after {survived} actions"


def test_capi_14216_a_label_that_keeps_being_rewritten_does_not_create_without_end() -> None:
    """cluster-api#14216: owned Machines that left the selector were never counted; cluster-api-provider-outscale#543
    ended with 3325 Machines."""
    world = settled(3)
    for _ in range(30):
        for machine in world.all(MACHINE):
            world.change(MACHINE, machine["metadata"]["name"], lambda m: m["metadata"]["labels"].update(pool="aside"))
        world.run(plan_for(world.view(), MACHINE_SET, "pool"))
        world.make_ready()
        world.advance(10)
    assert len(world.all(MACHINE)) <= 2 * 3
    conditions = world.get(MACHINE_SET, "pool")["status"]["conditions"]
    assert [c["status"] for c in conditions if c["type"] == "Frozen"] == ["True"]


def test_capi_9334_machines_still_deleting_do_not_make_more_machines_go() -> None:
    """cluster-api#9334: with Oldest or Newest, pending deletions were not counted and more Machines were deleted."""
    for policy in ("Oldest", "Newest", "Random"):
        world = World(machine_set("pool").replicas(5).delete_policy(policy))
        settle(world)
        scale(world, 3)
        for _ in range(6):
            world.run(plan_for(world.view(), MACHINE_SET, "pool"))
            world.advance(60)
        assert len(names(world)) == 3, policy
        assert len(world.all(MACHINE)) == 5, "the two are still there, deleting"


def test_capi_5424_an_unhealthy_machine_goes_before_a_healthy_one_whatever_the_policy() -> None:
    """cluster-api#5424, #10755: the policy alone decided, so healthy Machines were deleted and broken ones stayed."""
    for policy in ("Oldest", "Newest", "Random"):
        world = World(machine_set("pool").replicas(3).delete_policy(policy))
        settle(world)
        broken = names(world)[1]
        world.break_down(broken)
        scale(world, 2)
        settle(world, machines_work=False)
        assert broken not in names(world), policy


def test_autoscaler_8494_the_marked_machine_goes_though_its_mark_arrives_after_the_new_replicas() -> None:
    """autoscaler#8494, cluster-api#75: the autoscaler marks, then scales; the set saw the scaling first and took
    another Machine."""
    for marked in range(3):
        world = settled(3)
        process = Process(world)
        name = names(world)[marked]
        world.annotate(MACHINE, name, "cluster.k8s.io/delete-machine", "2026-06-01T12:00:00Z")
        scale(world, 2)
        process.catch_up(MACHINE_SET, 1)
        process.round(MACHINE_SET, "pool")
        process.catch_up(MACHINE_SET, 1)
        process.catch_up(MACHINE, 1)
        process.round(MACHINE_SET, "pool")
        assert name not in names(world)
        assert len(names(world)) == 2


def test_mao_736_a_template_that_can_never_work_is_not_tried_for_ever() -> None:
    """machine-api-operator#736: a health check deleted each failed Machine, the set made it again, without end."""
    world = World(machine_set("pool").replicas(2))
    world.run(plan_for(world.view(), MACHINE_SET, "pool"))
    failure = {
        "errorReason": "InvalidConfiguration",
        "errorMessage": "no such flavor",
        "conditions": [{"type": "Ready", "status": "False", "reason": "InvalidConfiguration"}],
    }
    for machine in world.all(MACHINE):
        world.change(MACHINE, machine["metadata"]["name"], lambda m: m.update(status=dict(failure)))
    first = names(world)[0]
    world.change(MACHINE, first, lambda m: m["metadata"].update(deletionTimestamp="2026-06-01T12:00:00Z"))
    world.advance(60)
    found = plan_for(world.view(), MACHINE_SET, "pool")
    assert creates(found) == []
    assert isinstance(found.outcome, Blocked)
    assert "no such flavor" in condition_of(found, "ScalingUp")["message"]
    mended = {"value": {"kind": "SimulatedMachineConfig", "flavor": "small"}}
    world.change(MACHINE_SET, "pool", lambda b: b["spec"]["template"]["spec"].update(providerConfig=mended))
    assert len(creates(plan_for(world.view(), MACHINE_SET, "pool"))) == 1


def test_capi_9629_a_restart_while_the_cluster_goes_makes_no_new_machines() -> None:
    """cluster-api#9629: after a restart in the middle of a cluster's deletion the sets filled up again."""
    world = World(machine_set("pool").replicas(3).in_cluster("c"), cluster("c").deleting())
    settle(world)
    assert not [write for write in world.writes if isinstance(write, Create)]
