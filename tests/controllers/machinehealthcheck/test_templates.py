"""A remediation template names nothing but a template in its own namespace, of a kind that the administrator lists."""

from __future__ import annotations

from typing import Any

import pytest

from api.remediation import template_kind
from api.validate import validate
from controllers.kernel.actions import CreateFromTemplate, Delete
from controllers.kernel.conditions import find
from controllers.kernel.plan import Failed, Plan
from controllers.kernel.refs import Key
from controllers.machinehealthcheck.reconciler import MachineHealthCheckReconciler
from tests.builders import FakeView
from tests.builders.plans import status_of
from tests.controllers.machinehealthcheck.checks import POOL, check, dark, its_node, member

TEMPLATE: dict[str, Any] = {"apiVersion": "remedy.example.com/v1", "kind": "RebootTemplate", "name": "reboot"}
VICTIM = "cluster.k8s.io/v1alpha1/namespaces/victim/machines/m-1?x="
FAULTY = [
    ({"apiVersion": VICTIM}, "apiVersion"),
    ({"apiVersion": "v1"}, "apiVersion"),
    ({"apiVersion": "apps/v1"}, "apiVersion"),
    ({"apiVersion": "remedy.example.com/.."}, "apiVersion"),
    ({"apiVersion": "remedy.example.com/v1\n"}, "apiVersion"),
    ({"apiVersion": 1}, "apiVersion"),
    ({"kind": "machines/m-1?x=Template"}, "kind"),
    ({"kind": "Template"}, "kind"),
    ({"kind": "Reboot"}, "kind"),
    ({"kind": ["RebootTemplate"]}, "kind"),
    ({"name": "../../victim/x"}, "name"),
    ({"name": ".."}, "name"),
    ({"name": "a?x="}, "name"),
    ({"namespace": "victim"}, "namespace"),
]


def outcome(allowed: frozenset[Any], template: Any) -> Plan:
    reconciler = MachineHealthCheckReconciler(allowed)
    body = check().having(remediationTemplate=template)
    sick, node = dark("a")
    sick.condition("HealthCheckSucceeded", "False", "UnhealthyNode")
    treated = member("b").condition("ExternallyRemediated", "False", "WaitingForRemediation")
    view = FakeView(POOL, body, sick, node, treated, its_node("b"))
    observed = reconciler.observe(Key("default", "check"), view, None)
    assert observed is not None
    return reconciler.plan(observed)


def reach(plan: Plan) -> list[Any]:
    return [action for action in plan.actions() if isinstance(action, CreateFromTemplate | Delete)]


@pytest.mark.parametrize(("wrong", "field"), FAULTY)
def test_another_path_than_a_templates_is_refused_by_field(wrong: dict[str, Any], field: str) -> None:
    template = TEMPLATE | wrong
    everything = frozenset({template_kind("RebootTemplate.remedy.example.com")})
    plan = outcome(everything, template)
    assert reach(plan) == []
    assert isinstance(plan.outcome, Failed)
    assert plan.outcome.reason == "InvalidConfiguration"
    assert f"spec.remediationTemplate.{field}" in plan.outcome.why
    body = check().having(remediationTemplate=template).build()
    assert [str(e.path) for e in validate(body) if "remediationTemplate" in e.path]


@pytest.mark.parametrize("allowed", [(), ("OtherTemplate.remedy.example.com",), ("RebootTemplate.other.example.com",)])
def test_a_kind_that_is_not_listed_is_refused_and_said(allowed: tuple[str, ...]) -> None:
    plan = outcome(frozenset(map(template_kind, allowed)), dict(TEMPLATE))
    assert reach(plan) == []
    said = find(status_of(plan)["conditions"], "RemediationAllowed")
    assert said is not None
    assert (said["status"], said["reason"]) == ("False", "RemediationKindNotAllowed")
    assert "RebootTemplate.remedy.example.com" in said["message"]
    assert "--remediation-kinds" in said["message"]


def test_a_listed_kind_is_used() -> None:
    plan = outcome(frozenset({template_kind("RebootTemplate.remedy.example.com")}), TEMPLATE | {"namespace": "default"})
    assert {type(action) for action in reach(plan)} == {CreateFromTemplate, Delete}


@pytest.mark.parametrize("text", ["", "Reboot", "RebootTemplate", "RebootTemplate.", "SecretTemplate.v1", "a.b.c", "*"])
def test_what_is_no_kind_of_templates_can_not_be_listed(text: str) -> None:
    with pytest.raises(ValueError, match="not a kind"):
        template_kind(text)
