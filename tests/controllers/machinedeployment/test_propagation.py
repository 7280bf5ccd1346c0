"""Changes that flow in place: through the MachineSet to the Machines, without a rollout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from tests.builders import World, machine_deployment
from tests.builders.loop import reconcile_once, settle
from tests.builders.plans import patches
from tests.controllers.machinedeployment.stories import NEW, a_set, deployment, machines, plan, set_template

Change = Callable[[dict[str, Any]], object]
Check = Callable[[dict[str, Any]], bool]
IN_PLACE: dict[str, tuple[Change, Check]] = {
    "a label of the Machines": (
        lambda spec: spec["template"]["metadata"]["labels"].update(team="a"),
        lambda machine: machine["metadata"]["labels"]["team"] == "a",
    ),
    "an annotation of the Machines": (
        lambda spec: spec["template"]["metadata"].update(annotations={"n": "1"}),
        lambda machine: machine["metadata"]["annotations"]["n"] == "1",
    ),
    "a label of the Nodes": (
        lambda spec: spec["template"]["spec"].update(metadata={"labels": {"zone": "b"}}),
        lambda machine: machine["spec"]["metadata"]["labels"] == {"zone": "b"},
    ),
    "a taint": (
        lambda spec: spec["template"]["spec"].update(taints=[{"key": "gpu", "effect": "NoSchedule"}]),
        lambda machine: machine["spec"]["taints"] == [{"key": "gpu", "effect": "NoSchedule"}],
    ),
    "a drain timeout": (
        lambda spec: spec["template"]["spec"].update(nodeDrainTimeout="5m"),
        lambda machine: machine["spec"]["nodeDrainTimeout"] == "5m",
    ),
}


@pytest.mark.parametrize(("change", "arrived"), IN_PLACE.values(), ids=IN_PLACE.keys())
def test_it_reaches_the_machines_and_none_is_replaced(change: Change, arrived: Check) -> None:
    world = World(machine_deployment("md").replicas(3))
    settle(world)
    before = {m["metadata"]["uid"] for m in world.all(MACHINE)}
    world.change(MACHINE_DEPLOYMENT, "md", lambda body: change(body["spec"]))
    settle(world)
    assert {m["metadata"]["uid"] for m in world.all(MACHINE)} == before
    assert all(arrived(dict(machine)) for machine in world.all(MACHINE))
    assert len(world.all(MACHINE_SET)) == 1
    assert reconcile_once(world) == 0


def test_what_is_dropped_from_the_template_is_taken_back_from_the_machines() -> None:
    owner = machine_deployment("md").replicas(1).node_label("zone", "a").taint("gpu").template_label("team", "a")
    world = World(owner)
    settle(world)

    def drop(body: dict[str, Any]) -> None:
        template = body["spec"]["template"]
        template["spec"].pop("metadata")
        template["spec"].pop("taints")
        template["metadata"]["labels"].pop("team")

    world.change(MACHINE_DEPLOYMENT, "md", drop)
    settle(world)
    (machine,) = world.all(MACHINE)
    assert not machine["spec"]["metadata"]["labels"]
    assert machine["spec"]["taints"] == []
    assert "team" not in machine["metadata"]["labels"]
    assert reconcile_once(world) == 0


def test_failure_domains_reach_all_sets_and_none_is_rolled_out() -> None:
    world = World(machine_deployment("md").replicas(3).spread_over("a", "b"))
    settle(world)
    assert {m["spec"]["failureDomain"] for m in world.all(MACHINE)} == {"a", "b"}
    before = {m["metadata"]["uid"] for m in world.all(MACHINE)}
    world.change(MACHINE_DEPLOYMENT, "md", lambda body: body["spec"].update(failureDomains=["a", "c"]))
    settle(world)
    (owner,) = world.all(MACHINE_SET)
    assert owner["spec"]["failureDomains"] == ["a", "c"]
    assert {m["metadata"]["uid"] for m in world.all(MACHINE)} == before
    body = world.get(MACHINE_DEPLOYMENT, "md")
    said = next(c for c in body["status"]["conditions"] if c["type"] == "Balanced")
    assert (said["status"], said["reason"]) == ("False", "Unbalanced")
    assert f"MachineSet {owner['metadata']['name']}: " in said["message"]
    world.change(MACHINE_DEPLOYMENT, "md", lambda body: body["spec"].pop("failureDomains"))
    settle(world)
    assert "failureDomains" not in world.all(MACHINE_SET)[0]["spec"]
    assert reconcile_once(world) == 0


def test_an_old_set_whose_template_names_one_failure_domain_keeps_to_it() -> None:
    """It may not have both: a patch with the new list would be refused for ever, and with it every scaling."""
    owner = deployment(3).spread_over("a", "b")
    old = a_set("old", 2)
    old.template["spec"]["failureDomain"] = "z"
    found = patches(plan(owner, old, machines(old, 2), a_set("new", 1, NEW)), MACHINE_SET)
    assert "failureDomains" not in found["old"].patch.get("spec", {})
    assert found["new"].patch["spec"]["failureDomains"] == ["a", "b"]


def test_in_place_a_machine_stays_in_the_failure_domain_that_its_set_chose() -> None:
    owner = machine_deployment("md").replicas(2).spread_over("a", "b")
    owner.spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"inPlace": "Prefer"}}
    world = World(owner)
    settle(world)
    before = {m["metadata"]["uid"]: m["spec"]["failureDomain"] for m in world.all(MACHINE)}
    new = {"versions": {"kubelet": "1.35.0"}}
    world.change(MACHINE_DEPLOYMENT, "md", lambda body: body["spec"]["template"]["spec"].update(new))
    settle(world)
    assert {m["metadata"]["uid"]: m["spec"]["failureDomain"] for m in world.all(MACHINE)} == before
    assert {m["spec"]["versions"]["kubelet"] for m in world.all(MACHINE)} == {"1.35.0"}
    assert reconcile_once(world) == 0


def test_policy_and_min_ready_seconds_reach_all_sets() -> None:
    owner = deployment(3).min_ready(30)
    owner.spec["strategy"]["rollingUpdate"]["deletePolicy"] = "Oldest"
    old, new = a_set("old", 2), a_set("new", 1, NEW)
    found = patches(plan(owner, old, machines(old, 2), new, machines(new, 0, pending=1)), MACHINE_SET)
    for name in ("old", "new"):
        assert found[name].patch["spec"]["minReadySeconds"] == 30
        assert found[name].patch["spec"]["deletePolicy"] == "Oldest"


def test_labels_of_the_template_do_not_reach_sets_that_are_going_away() -> None:
    owner = deployment(3).template_label("team", "a")
    old, new = a_set("old", 2), a_set("new", 1, NEW)
    found = patches(plan(owner, old, machines(old, 2), new, machines(new, 0, pending=1)), MACHINE_SET)
    assert "template" in found["new"].patch["spec"]
    assert "template" not in found["old"].patch.get("spec", {})


def test_capi_12990_a_change_of_replicas_rolls_nothing() -> None:
    """cluster-api#12990: editing the replicas rolled all nodes."""
    world = World(machine_deployment("md").replicas(3))
    settle(world)
    before = {m["metadata"]["uid"] for m in world.all(MACHINE)}
    world.change(MACHINE_DEPLOYMENT, "md", lambda body: body["spec"].update(replicas=5))
    settle(world)
    assert before < {m["metadata"]["uid"] for m in world.all(MACHINE)}
    assert len(world.all(MACHINE_SET)) == 1


def test_filling_in_empty_fields_rolls_nothing() -> None:
    """A server that starts to default a field must not roll every Node (as Kubernetes upgrades once did)."""
    world = World(machine_deployment("md").replicas(2))
    settle(world)
    empties: dict[str, Any] = {"roles": [], "taints": [], "metadata": {}, "configSource": None}
    world.change(MACHINE_DEPLOYMENT, "md", lambda body: body["spec"]["template"]["spec"].update(empties))
    settle(world)
    assert len(world.all(MACHINE_SET)) == 1


def test_another_kubelet_version_does_roll() -> None:
    world = World(machine_deployment("md").replicas(2))
    settle(world)
    before = {m["metadata"]["uid"] for m in world.all(MACHINE)}
    set_template(world, "1.99.0")
    settle(world)
    assert not before & {m["metadata"]["uid"] for m in world.all(MACHINE)}
