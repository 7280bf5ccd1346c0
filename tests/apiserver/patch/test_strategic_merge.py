"""Strategic merge patches against golden vectors recorded from a kube-apiserver 1.36."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodewright.apiserver import patch
from nodewright.apiserver.values import ApiError, Resource

GOLDEN = Path(__file__).parent / "golden"
DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments", "deployment", "DeploymentList", True)
NODE = Resource("", "v1", "Node", "nodes", "node", "NodeList", False)
WIDGET = Resource("example.com", "v1", "Widget", "widgets", "widget", "WidgetList", True, builtin=False)
NOT_REFUSED_BY_US = {"spec": "x"}, {"spec": {"template": {"spec": {"containers": "x"}}}}
"""The real server notices when it decodes the result; here, validation of the result does."""


def load(name: str) -> list[Any]:
    golden = json.loads((GOLDEN / name).read_text())
    return [pytest.param(golden["base"], case, id=json.dumps(case["patch"])) for case in golden["cases"]]


def essence(value: Any) -> Any:
    """What is left without empty values, which the real server's types drop, and without unknown fields."""
    if isinstance(value, dict):
        kept = {k: essence(v) for k, v in value.items() if k != "nope"}
        return {k: v for k, v in kept.items() if v not in ({}, [], None)}
    return [essence(v) for v in value] if isinstance(value, list) else value


def compare(resource: Resource, base: Any, case: Any) -> None:
    frozen = json.dumps(base)
    if case["code"] == 200:
        after = patch.apply_strategic(resource, base, case["patch"])
        after = {k: v for k, v in after.items() if k not in ("apiVersion", "kind")}
        assert essence(after) == essence(case["after"])
    elif case["patch"] not in NOT_REFUSED_BY_US:
        with pytest.raises(ApiError) as caught:
            patch.apply_strategic(resource, base, case["patch"])
        assert caught.value.code == 400
        assert caught.value.message[:36] == case["message"][:36]
    assert json.dumps(base) == frozen


@pytest.mark.parametrize(("base", "case"), load("strategic_deployment.json"))
def test_a_deployment_is_patched_as_the_real_server_patches_it(base: Any, case: Any) -> None:
    compare(DEPLOYMENT, base, case)


@pytest.mark.parametrize(("base", "case"), load("strategic_node.json"))
def test_a_node_is_patched_as_the_real_server_patches_it(base: Any, case: Any) -> None:
    compare(NODE, base, case)


def test_a_custom_resource_has_no_strategic_merge() -> None:
    with pytest.raises(ApiError) as caught:
        patch.apply_strategic(WIDGET, {"spec": {}}, {"spec": {"a": 1}})
    assert (caught.value.code, caught.value.reason) == (415, "UnsupportedMediaType")


def test_what_the_patch_does_not_touch_is_shared_with_the_original() -> None:
    node = {"metadata": {"name": "n"}, "spec": {"podCIDR": "10.0.0.0/24"}, "status": {"capacity": {"cpu": "1"}}}
    after = patch.apply_strategic(NODE, node, {"spec": {"unschedulable": True}})
    assert after["status"] is node["status"]
    assert "unschedulable" not in node["spec"]


def test_conditions_of_a_node_merge_by_type() -> None:
    ready, disk = {"type": "Ready", "status": "False", "reason": "Booting"}, {"type": "DiskPressure", "status": "False"}
    change = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    after = patch.apply_strategic(NODE, {"status": {"conditions": [disk, ready]}}, change)
    assert after["status"]["conditions"] == [disk, {"type": "Ready", "status": "True", "reason": "Booting"}]
