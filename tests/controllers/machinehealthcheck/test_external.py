"""Remediation by an object made from a template."""

from __future__ import annotations

from typing import Any

from controllers.kernel.actions import CreateFromTemplate, Delete, Patch
from controllers.kernel.plan import Failed, Plan
from controllers.kernel.refs import guessed_kind
from tests.controllers.machinehealthcheck.checks import (
    CheckBuilder,
    check,
    dark,
    its_node,
    marks,
    member,
    plan,
    selected_for_deletion,
    well,
)

TEMPLATE = {"apiVersion": "remedy.example.com/v1", "kind": "RebootTemplate", "name": "reboot"}


def external(**strategy: Any) -> CheckBuilder:
    return check().having(remediationTemplate=dict(TEMPLATE)).strategy(**strategy)


def known_sick(name: str = "a") -> list[Any]:
    body, node = dark(name)
    said = "condition Ready of the Node is Unknown for 5m0s or longer"
    return [body.condition("HealthCheckSucceeded", "False", "UnhealthyNode", said), node]


def made(found: Plan) -> list[CreateFromTemplate]:
    return [action for action in found.actions() if isinstance(action, CreateFromTemplate)]


def test_a_sick_machine_is_called_so_first() -> None:
    found = plan(external(), *dark("a"), *well("b"))
    assert made(found) == []
    assert list(marks(found)["a"]) == ["HealthCheckSucceeded"]


def test_then_an_object_is_made_for_it_and_after_that_it_is_said() -> None:
    found = plan(external(), known_sick()[0].in_cluster("c"), known_sick()[1], *well("b"))
    (action,) = made(found)
    assert str(action.template) == "RebootTemplate default/reboot"
    assert (action.kind.name, action.kind.plural) == ("Reboot", "reboots")
    assert action.body["metadata"]["name"] == "a"
    assert action.body["metadata"]["ownerReferences"][0]["uid"] == "uid-a"
    assert action.body["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == "c"
    order = [type(step[0]) for step in found.steps]
    assert order == [Patch, CreateFromTemplate, Patch]
    assert marks(found)["a"]["ExternallyRemediated"]["status"] == "False"
    assert selected_for_deletion(found) == [], "the owner is not asked as well"


def test_the_object_is_made_once() -> None:
    body, node = known_sick()
    body.condition("ExternallyRemediated", "False", "WaitingForRemediation", "an object made from …")
    found = plan(external(), body, node, *well("b"))
    assert made(found) == []
    assert marks(found) == {}


def test_the_object_goes_when_the_machine_is_well_again_and_so_do_the_conditions() -> None:
    body = member("a").condition("HealthCheckSucceeded", "False", "UnhealthyNode")
    body.condition("ExternallyRemediated", "False", "WaitingForRemediation")
    found = plan(external(), body, its_node("a"))
    deletes = [action for action in found.actions() if isinstance(action, Delete)]
    assert [str(action.target) for action in deletes] == ["Reboot default/a"]
    assert list(marks(found)["a"]) == ["HealthCheckSucceeded"]
    assert isinstance(found.steps[-1][0], Patch), "the conditions go last: a crash in between deletes once more"


def test_who_mends_may_give_up_and_ask_the_owner() -> None:
    body, node = known_sick()
    body.condition("ExternallyRemediated", "False", "WaitingForRemediation")
    body.condition("OwnerRemediated", "False", "WaitingForRemediation", "the reboot did not help")
    assert marks(plan(external(), body, node, *well("b"))) == {}


def test_a_machine_without_an_owner_can_be_mended_from_outside() -> None:
    body, node = known_sick()
    assert len(made(plan(external(), body.orphan(), node))) == 1


def test_the_budget_holds_for_it_too() -> None:
    busy, node = known_sick("busy")
    busy.condition("ExternallyRemediated", "False", "WaitingForRemediation")
    found = plan(external(maxInFlight=1), busy, node, *known_sick("a"), *well("b"), *well("c"), *well("d"))
    assert made(found) == []


def test_a_template_of_a_kind_without_the_word_is_refused() -> None:
    wrong = check().having(remediationTemplate={**TEMPLATE, "kind": "Reboot"})
    found = plan(wrong, *known_sick())
    assert isinstance(found.outcome, Failed)
    assert "spec.remediationTemplate.kind" in found.outcome.why


def test_the_object_takes_spec_labels_and_annotations_of_the_template() -> None:
    (action,) = made(plan(external(), *known_sick()))
    inner = {"metadata": {"labels": {"a": "b"}, "annotations": {"x": "y"}}, "spec": {"strategy": {"retryLimit": 1}}}
    body = action.filled({"spec": {"template": inner}}).body
    assert body["spec"] == {"strategy": {"retryLimit": 1}}
    assert body["metadata"]["labels"]["a"] == "b"
    assert body["metadata"]["annotations"] == {"x": "y"}
    assert body["metadata"]["name"] == "a"
    assert action.filled({}).body["spec"] == {}


def test_plurals_are_guessed_as_kubernetes_guesses_them() -> None:
    guesses = {"Reboot": "reboots", "Remedy": "remedies", "Process": "processes"}
    assert {kind: guessed_kind("g/v1", kind).plural for kind in guesses} == guesses
    assert guessed_kind("v1", "Pod").group == ""
