"""What flows from the template to existing Machines without a rollout."""

from __future__ import annotations

from typing import Any

from controllers.kernel.refs import MACHINE, MACHINE_SET
from tests.builders import FakeView, World, machine_set
from tests.builders.loop import plan_for, reconcile_once, settle
from tests.builders.objects import MachineSetBuilder
from tests.builders.plans import patches


def settled(builder: MachineSetBuilder) -> World:
    world = World(builder.replicas(1))
    settle(world)
    return world


def edit(world: World, change: Any) -> dict[str, Any]:
    """Edit the set's template, let it settle, and return its one Machine."""
    before = [m["metadata"]["uid"] for m in world.all(MACHINE)]
    world.change(MACHINE_SET, "pool", lambda body: change(body["spec"]["template"]))
    settle(world)
    (found,) = world.all(MACHINE)
    assert [found["metadata"]["uid"]] == before, "no Machine was replaced"
    assert reconcile_once(world) == 0
    return dict(found)


def only(world: World) -> dict[str, Any]:
    (found,) = world.all(MACHINE)
    return dict(found)


def test_labels_and_annotations_are_added_changed_and_taken_back() -> None:
    world = settled(machine_set("pool").template_label("a", "1").template_annotation("n", "1"))
    edit(world, lambda t: t["metadata"]["labels"].update(a="2", b="3"))
    assert only(world)["metadata"]["labels"]["a"] == "2"
    found = edit(world, lambda t: (t["metadata"]["labels"].pop("a"), t["metadata"].pop("annotations")))
    assert "a" not in found["metadata"]["labels"]
    assert found["metadata"]["labels"]["b"] == "3"
    assert "n" not in found["metadata"]["annotations"]


def test_node_labels_taints_and_timeouts_flow_to_the_machine() -> None:
    world = settled(machine_set("pool").node_label("zone", "a"))

    def change(template: dict[str, Any]) -> None:
        template["spec"]["metadata"]["labels"] = {"zone": "b", "disk": "ssd"}
        template["spec"]["taints"] = [{"key": "gpu", "effect": "NoSchedule"}]
        template["spec"]["nodeDrainTimeout"] = "10m"

    spec = edit(world, change)["spec"]
    assert spec["metadata"]["labels"] == {"zone": "b", "disk": "ssd"}
    assert spec["taints"] == [{"key": "gpu", "effect": "NoSchedule"}]
    assert spec["nodeDrainTimeout"] == "10m"
    spec = edit(world, lambda t: [t["spec"].pop(key) for key in ("taints", "nodeDrainTimeout", "metadata")])["spec"]
    assert spec["taints"] == []
    assert "nodeDrainTimeout" not in spec
    assert not spec["metadata"]["labels"]


def test_what_a_person_put_on_one_machine_stays() -> None:
    world = settled(machine_set("pool").taint("gpu").node_label("zone", "a"))
    name = only(world)["metadata"]["name"]

    def by_hand(body: dict[str, Any]) -> None:
        body["metadata"]["labels"]["mine"] = "yes"
        body["spec"]["taints"].append({"key": "mine", "effect": "NoExecute"})
        body["spec"]["metadata"]["labels"]["mine"] = "yes"

    world.change(MACHINE, name, by_hand)
    found = edit(world, lambda t: (t["spec"].pop("taints"), t["metadata"]["labels"].update(new="1")))
    assert found["metadata"]["labels"]["mine"] == "yes"
    assert found["spec"]["taints"] == [{"key": "mine", "effect": "NoExecute"}]
    assert found["spec"]["metadata"]["labels"] == {"zone": "a", "mine": "yes"}


def test_what_was_changed_on_the_machine_itself_is_put_right() -> None:
    world = settled(machine_set("pool").taint("gpu", "a"))
    name = only(world)["metadata"]["name"]
    world.change(MACHINE, name, lambda body: body["spec"]["taints"][0].update(value="b"))
    settle(world)
    assert only(world)["spec"]["taints"] == [{"key": "gpu", "value": "a", "effect": "NoSchedule"}]


def test_a_new_kubelet_version_does_not_touch_existing_machines() -> None:
    """As with a ReplicaSet; a MachineDeployment would roll it out."""
    world = settled(machine_set("pool"))
    found = edit(world, lambda t: t["spec"]["versions"].update(kubelet="1.99.0"))
    assert found["spec"]["versions"]["kubelet"] == "1.34.0"


def test_a_patch_that_replaces_the_list_of_taints_is_guarded() -> None:
    world = settled(machine_set("pool"))
    taint = {"key": "gpu", "effect": "NoSchedule"}
    world.change(MACHINE_SET, "pool", lambda body: body["spec"]["template"]["spec"].update(taints=[taint]))
    (patch,) = patches(plan_for(world.view(), MACHINE_SET, "pool"), MACHINE).values()
    assert patch.resource_version == only(world)["metadata"]["resourceVersion"]


def test_a_damaged_record_removes_nothing() -> None:
    world = settled(machine_set("pool").template_label("a", "1"))
    body = only(world)
    for damaged in ("{", "[]", '{"labels": 7}', '{"labels": ["pool", 5]}'):
        broken = {**body, "metadata": {**body["metadata"], "annotations": {"nodewright.dev/propagated": damaged}}}
        view = FakeView(world.get(MACHINE_SET, "pool"), broken)
        (patch,) = patches(plan_for(view, MACHINE_SET, "pool"), MACHINE).values()
        assert None not in patch.patch["metadata"].get("labels", {}).values()
