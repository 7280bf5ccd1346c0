"""Bugs that peers had in rollouts; each test names the one it guards against."""

from __future__ import annotations

from controllers.kernel.actions import Create
from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, Key
from controllers.machinedeployment.observe import observe
from controllers.machinedeployment.reconciler import RECONCILER
from controllers.machinedeployment.rolling_update import Targets
from tests.builders import FakeView, World, machine, machine_deployment
from tests.builders.loop import settle
from tests.builders.schedule import Process
from tests.controllers.machinedeployment.stories import (
    NEW,
    OLD,
    a_set,
    deployment,
    machines,
    next_sizes,
    set_template,
    sets_of,
)


def test_mcm_802_sets_without_annotations_are_not_scaled_to_zero() -> None:
    """machine-controller-manager#802: a missing entry read as 0 scaled all MachineSets away.

    Two sets without any record, as a take-over finds them, while the deployment is paused and scaled.
    """
    old, new = a_set("old", 4), a_set("new", 4, NEW)
    found = next_sizes(deployment(10).paused(), old, machines(old, 4), new, machines(new, 4))
    assert all(size >= 4 for size in found.values())


def test_mcm_802_a_set_that_a_strategy_does_not_name_keeps_its_size() -> None:
    old, new = a_set("old", 4), a_set("new", 4, NEW)
    observed = observe(Key("default", "md"), FakeView(deployment(8), old, new))
    assert observed is not None
    assert [Targets().of(state) for state in observed.sets] == [4, 4]


def test_capi_13649_a_stalled_view_makes_one_set_and_no_machine_twice() -> None:
    """cluster-api#13649: the cache stalled, and the deployment made 4 MachineSets and 8 Machines instead of 2."""
    world = World(machine_deployment("md").replicas(2))
    deployments, sets = Process(world), Process(world)
    for _ in range(4):
        deployments.round(MACHINE_DEPLOYMENT, "md")
        for body in world.all(MACHINE_SET):
            sets.round(MACHINE_SET, body["metadata"]["name"])
        sets.catch_up(MACHINE_SET, 2)
        deployments.catch_up(MACHINE_DEPLOYMENT, 1)
        world.advance(60)
    assert len(world.all(MACHINE_SET)) == 1
    assert len(world.all(MACHINE)) == 2


def test_capi_13649_an_old_deployment_is_refused_before_it_can_make_a_set_of_an_old_template() -> None:
    """A view that still shows the template of before makes no MachineSet for it."""
    world = World(machine_deployment("md").replicas(2).kubelet(OLD))
    process = Process(world)
    set_template(world, NEW)
    process.round(MACHINE_DEPLOYMENT, "md")
    assert world.all(MACHINE_SET) == []
    settle(world)
    assert sets_of(world) == {NEW: 2}


def test_capi_8987_more_machines_than_replicas_never_count_as_negative() -> None:
    """cluster-api#8987: "scale down 2 → 3", an error loop from a negative number of unhealthy Machines."""
    for available in range(4):
        old, new = a_set("old", 1), a_set("new", 2, NEW)
        found = next_sizes(deployment(3), old, machines(old, 3), new, machines(new, available))
        assert found.get("old", 1) <= 1
        assert all(size >= 0 for size in found.values())


def test_capi_9334_machines_that_still_delete_do_not_bring_down_more() -> None:
    """cluster-api#9334: with deletions pending, further Machines were deleted."""
    old, new = a_set("old", 2), a_set("new", 1, NEW)
    going = machine("going").of(old).ready().deleting()
    found = next_sizes(deployment(3), old, machines(old, 2), going, new, machines(new, 0, pending=1))
    assert "old" not in found


def test_mcm_1091_a_deployment_scaled_from_3_to_131_makes_131() -> None:
    """machine-controller-manager#1091: 3 → 131 got 43 surplus Machines, and the autoscaler removed the wrong ones."""
    world = World(machine_deployment("md").replicas(3))
    settle(world)
    world.change(MACHINE_DEPLOYMENT, "md", lambda body: body["spec"].update(replicas=131))
    settle(world)
    assert len(world.all(MACHINE)) == 131
    assert len([write for write in world.writes if isinstance(write, Create)]) == 1 + 131


def test_mcm_754_a_scaling_is_not_applied_to_the_old_set_as_well() -> None:
    """machine-controller-manager#754: a scale in the middle of a rollout was given to both sets."""
    old, new = a_set("old", 2), a_set("new", 2, NEW)
    assert next_sizes(deployment(6), old, machines(old, 2), new, machines(new, 2)) == {"new": 5}


def test_capi_1127_a_step_follows_the_machine_that_becomes_ready_and_not_a_resync() -> None:
    """cluster-api#1127: ten minutes for each step. The Machine's change alone must wake the deployment."""
    owner = deployment(3)
    owned = a_set("new", 1, NEW)
    member = machine("m").of(owned)
    (wake,) = [wake for wake in RECONCILER.wakes if wake.kind == MACHINE]
    keys = list(wake.keys(member.ready().build(), FakeView(owner, owned)))
    assert [key.name for key in keys] == ["md"]
    assert wake.ignores is not None
    assert not wake.ignores(machine("m").of(owned).pending().build(), member.build())


def test_autoscaler_8494_the_machine_marked_by_the_autoscaler_is_the_one_that_goes() -> None:
    """autoscaler#8494, cluster-api#45: scaling the deployment down took another Machine than the marked one."""
    for index in range(3):
        world = World(machine_deployment("md").replicas(3))
        settle(world)
        name = sorted(m["metadata"]["name"] for m in world.all(MACHINE))[index]
        world.annotate(MACHINE, name, "cluster.k8s.io/delete-machine", "2026-06-01T12:00:00Z")
        world.change(MACHINE_DEPLOYMENT, "md", lambda body: body["spec"].update(replicas=2))
        settle(world)
        assert name not in {m["metadata"]["name"] for m in world.all(MACHINE)}
        assert len(world.all(MACHINE)) == 2
