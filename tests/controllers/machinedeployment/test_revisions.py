"""The current MachineSet, revision numbers, history, names and collisions."""

from __future__ import annotations

from api import names
from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from tests.builders import World, cluster, machine_deployment, machine_set
from tests.builders.loop import plan_for, reconcile_once, settle
from tests.builders.plans import created_names, creates, deletes, patches, status_of
from tests.controllers.machinedeployment.stories import (
    NEW,
    OLD,
    a_set,
    deployment,
    machines,
    plan,
    set_template,
    sets_of,
)


def world_of(*versions: str, history: int = 1) -> World:
    world = World(machine_deployment("md").replicas(1).kubelet(versions[0]).history_limit(history))
    settle(world)
    for version in versions[1:]:
        set_template(world, version)
        settle(world)
    return world


def revisions(world: World) -> dict[str, str]:
    found = {}
    for body in world.all(MACHINE_SET):
        version = body["spec"]["template"]["spec"]["versions"]["kubelet"]
        found[version] = body["metadata"]["annotations"][names.REVISION_ANNOTATION]
    return found


def test_each_template_gets_the_next_revision_and_the_deployment_shows_it() -> None:
    world = world_of("1.1.0", "1.2.0", "1.3.0", history=5)
    assert revisions(world) == {"1.1.0": "1", "1.2.0": "2", "1.3.0": "3"}
    annotations = world.get(MACHINE_DEPLOYMENT, "md")["metadata"]["annotations"]
    assert annotations[names.REVISION_ANNOTATION] == annotations[names.CAPI_REVISION_ANNOTATION] == "3"


def test_going_back_gives_the_kept_set_a_new_number_and_remembers_the_old_one() -> None:
    world = world_of("1.1.0", "1.2.0", "1.1.0", history=5)
    assert revisions(world) == {"1.1.0": "3", "1.2.0": "2"}
    current = next(b for b in world.all(MACHINE_SET) if b["spec"]["replicas"])
    assert current["metadata"]["annotations"][names.REVISION_HISTORY_ANNOTATION] == "1"


def test_going_back_and_forth_makes_no_further_sets() -> None:
    world = world_of(*["1.1.0", "1.2.0"] * 4, history=5)
    assert len(world.all(MACHINE_SET)) == 2


def test_the_history_limit_keeps_the_newest_old_sets() -> None:
    assert revisions(world_of("1.1.0", "1.2.0", "1.3.0", "1.4.0", history=2)).keys() == {"1.2.0", "1.3.0", "1.4.0"}
    assert revisions(world_of("1.1.0", "1.2.0", history=0)).keys() == {"1.2.0"}


def test_nothing_is_forgotten_while_a_rollout_runs_or_a_machine_of_it_is_left() -> None:
    old, older, new = a_set("old", 0), a_set("older", 0, "1.0.0", age=3000), a_set("new", 3, NEW)
    left = machines(older, 1)[0].deleting()
    done = plan(deployment(3).history_limit(0), old, older, left, new, machines(new, 3))
    assert deletes(done) == ["old"], "a Machine of the older one is still going"
    running = plan(deployment(3).history_limit(0), old, new, machines(new, 2, pending=1))
    assert deletes(running) == []


def test_the_name_of_a_set_derives_from_the_template() -> None:
    first, second = World(machine_deployment("md").kubelet(OLD)), World(machine_deployment("md").kubelet(OLD))
    for world in (first, second):
        reconcile_once(world)
    named = [[body["metadata"]["name"] for body in world.all(MACHINE_SET)] for world in (first, second)]
    assert named[0] == named[1]


def test_a_name_taken_by_somebody_else_is_left_to_them() -> None:
    """A collision is counted in the status, and the next hash is another one."""
    owner = machine_deployment("md").replicas(1)
    (taken,) = created_names(plan(owner))
    world = World(owner, machine_set(taken).owned_by(cluster("c")))
    settle(world)
    assert world.get(MACHINE_DEPLOYMENT, "md")["status"]["collisionCount"] == 1
    assert len(world.all(MACHINE_SET)) == 2
    assert len(world.all(MACHINE)) >= 1


def test_a_set_of_the_same_template_that_is_still_going_is_waited_for() -> None:
    owner = machine_deployment("md").replicas(1)
    (name,) = created_names(plan(owner))
    found = plan(owner, machine_set(name).of(owner, "h").deleting())
    assert creates(found) == []
    assert "collisionCount" not in status_of(found)


def test_of_several_sets_with_the_template_the_one_with_most_machines_stays_and_the_others_go() -> None:
    """cluster-api#13649 left four of them behind; a take-over must clear that up."""
    one, two = a_set("one", 1, NEW, age=2000), a_set("two", 2, NEW)
    world = World(deployment(3), one, two, *machines(one, 1), *machines(two, 2))
    settle(world)
    assert {b["metadata"]["name"]: b["spec"]["replicas"] for b in world.all(MACHINE_SET)} == {"one": 0, "two": 3}


def test_an_orphaned_set_that_matches_is_adopted_before_anything_is_created() -> None:
    orphan = a_set("left", 2, NEW).orphan().version("9")
    found = plan(deployment(2), orphan)
    adoption = patches(found, MACHINE_SET)["left"]
    assert adoption.resource_version == "9"
    assert adoption.patch["metadata"]["ownerReferences"][0]["uid"] == "uid-md"
    assert creates(found) == []


def test_a_new_set_carries_what_the_autoscaler_looks_for() -> None:
    owner = machine_deployment("md").replicas(1).in_cluster("prod").annotated("mine", "1")
    owner.annotated(names.AUTOSCALER_MAX_ANNOTATION, "5").annotated("kubectl.kubernetes.io/last-applied-configuration")
    (body,) = creates(plan(owner))
    labels, annotations = body["metadata"]["labels"], body["metadata"]["annotations"]
    assert labels[names.CAPI_DEPLOYMENT_NAME_LABEL] == labels[names.DEPLOYMENT_NAME_LABEL] == "md"
    assert labels[names.CLUSTER_NAME_LABEL] == "prod"
    hash_ = labels[names.TEMPLATE_HASH_LABEL]
    assert body["spec"]["selector"]["matchLabels"] == {"pool": "md", names.TEMPLATE_HASH_LABEL: hash_}
    assert body["spec"]["template"]["metadata"]["labels"] == {"pool": "md", names.TEMPLATE_HASH_LABEL: hash_}
    assert annotations[names.REVISION_ANNOTATION] == annotations[names.CAPI_REVISION_ANNOTATION] == "1"
    assert annotations["mine"] == "1"
    assert names.AUTOSCALER_MAX_ANNOTATION not in annotations, "a set of a deployment is no node group"
    assert not any("last-applied" in key for key in annotations)


def test_the_old_set_can_be_told_from_the_current_one_by_the_hard_coded_keys() -> None:
    """autoscaler#8494: old revisions with replicas are no scale-down candidates; it compares these annotations."""
    world = World(machine_deployment("md").replicas(2).kubelet(OLD))
    settle(world)
    set_template(world, NEW)
    for _ in range(3):
        reconcile_once(world)
    numbers = {b["metadata"]["annotations"][names.CAPI_REVISION_ANNOTATION] for b in world.all(MACHINE_SET)}
    assert numbers == {"1", "2"}
    assert world.get(MACHINE_DEPLOYMENT, "md")["metadata"]["annotations"][names.CAPI_REVISION_ANNOTATION] == "2"


def test_deleting_the_deployment_makes_and_scales_nothing() -> None:
    """cluster-api#777: a deployment that was going made its Machines anew."""
    old = a_set("old", 2)
    found = plan(deployment(3).deleting(), old, machines(old, 2))
    assert creates(found) == []
    assert patches(found, MACHINE_SET) == {}


def test_a_cluster_that_goes_starts_no_rollout() -> None:
    world = World(deployment(3).in_cluster("c"), cluster("c").deleting())
    settle(world)
    assert world.all(MACHINE_SET) == []
    assert sets_of(world) == {}


def test_a_paused_cluster_stops_everything_but_the_condition() -> None:
    view = World(deployment(3).in_cluster("c"), cluster("c").paused()).view()
    found = plan_for(view, MACHINE_DEPLOYMENT, "md")
    assert creates(found) == []
    assert [c["type"] for c in status_of(found)["conditions"]] == ["Paused"]
