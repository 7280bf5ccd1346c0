"""CapacityBuffers and CapacityQuotas on the real plane: Nodes come for a buffer, kube-scheduler gives its room to pods,
it is filled up again as far as a quota lets it, and the Nodes go with it. The autoscaler has the rights of
deploy/autoscaler and deploy/components/capacity alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.program import CommandFailed, Kubectl, Run
from tests.cli.processes import nodewright
from tests.e2e.scheduled import scheduled
from tests.e2e.test_autoscaler import with_rights_of_its_own
from tests.e2e.test_provisioning_requests import group
from tests.realplane import REAL
from tests.runtime.stub_server import until

pytestmark = [pytest.mark.kubectl, *REAL]

API = "autoscaling.x-k8s.io/v1beta1"
SECONDS = 300.0


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path) -> Iterator[Kubectl]:
    folder = tmp_path_factory.mktemp("capacity")
    with scheduled(folder, kubectl_binary, components=("capacity",)) as (plane, found):
        more = ("--capacity-buffers-enabled", "--capacity-quotas-enabled")
        with Run(folder, found), with_rights_of_its_own(folder / "autoscaler", plane, found, *more):
            yield found


def pod_spec() -> dict[str, Any]:
    """Fills a Node of 4 cores."""
    resources = {"requests": {"cpu": "3"}}
    return {
        "containers": [{"name": "main", "image": "example.com/web", "resources": resources}],
        "terminationGracePeriodSeconds": 0,
    }


def create(kubectl: Kubectl, *items: dict[str, Any]) -> None:
    kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)}))


def condition(kubectl: Kubectl, kind: str, name: str, type_: str) -> dict[str, Any]:
    body = json.loads(kubectl("get", kind, name, "-o", "json"))
    conditions = (body.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == type_), {})


def nodes(kubectl: Kubectl) -> int:
    return len(json.loads(kubectl("get", "nodes", "-o", "json"))["items"])


async def test_room_is_kept_within_a_quota_taken_by_pods_and_filled_up_again(kubectl: Kubectl) -> None:
    await group(kubectl, "workers", 9)
    quota = {"limits": {"resources": {"nodes": 3}}}
    buffer = {"podTemplateRef": {"name": "web"}, "replicas": 2}
    create(
        kubectl,
        {"apiVersion": API, "kind": "CapacityQuota", "metadata": {"name": "whole"}, "spec": quota},
        {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "web"}, "template": {"spec": pod_spec()}},
        {"apiVersion": API, "kind": "CapacityBuffer", "metadata": {"name": "web"}, "spec": buffer},
    )
    await until(lambda: nodes(kubectl) == 2, SECONDS)
    await until(lambda: condition(kubectl, "cb", "web", "Provisioning").get("status") == "True", SECONDS)

    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"web-{n}"}, "spec": pod_spec()} for n in range(2)]
    create(kubectl, *pods)
    kubectl("wait", "--for=condition=PodScheduled", "pod", "--all", "--timeout=240s", timeout=300)
    await until(lambda: nodes(kubectl) == 3, SECONDS)
    await until(lambda: "RequiresNewCapacity: CapacityQuota whole" in _short(kubectl), SECONDS)
    create(kubectl, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "late"}, "spec": pod_spec()})
    create(kubectl, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "later"}, "spec": pod_spec()})
    await until(lambda: "CapacityQuota whole limits nodes to 3" in explained(kubectl), SECONDS)
    await until(lambda: used(kubectl) == {"nodes": "3"}, SECONDS)

    kubectl("delete", "cb", "web")
    kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
    await until(lambda: nodes(kubectl) == 0, SECONDS)
    await until(lambda: used(kubectl) == {"nodes": "0"}, SECONDS)


def explained(kubectl: Kubectl) -> str:
    """Of the two pods for which one place is left."""
    way = ("--kubeconfig", str(kubectl.kubeconfig))
    return "".join(nodewright("autoscaler", "explain", "pod", name, *way).stdout for name in ("late", "later"))


def _short(kubectl: Kubectl) -> str:
    """Reason and message of one look: between two of them a Node may have joined."""
    found = condition(kubectl, "cb", "web", "Provisioning")
    _, quota, rest = str(found.get("message")).partition("CapacityQuota")
    return f"{found.get('reason')}: {quota}{rest}"


def used(kubectl: Kubectl) -> dict[str, str]:
    body = json.loads(kubectl("get", "cq", "whole", "-o", "json"))
    found: dict[str, str] = ((body.get("status") or {}).get("used") or {}).get("resources") or {}
    return found


@pytest.mark.parametrize(
    ("kind", "spec", "refused"),
    [
        ("CapacityBuffer", {"podTemplateRef": {"name": "a"}}, "podTemplateRef needs replicas or limits"),
        ("CapacityBuffer", {"replicas": 1}, "exactly one of podTemplateRef and scalableRef"),
        ("CapacityQuota", {"limits": {"resources": {"cpu": "500m"}}}, "whole numbers that are not negative"),
        ("CapacityQuota", {"limits": {"resources": {"cpu": -1}}}, "whole numbers that are not negative"),
    ],
    ids=str,
)
def test_a_real_api_server_refuses_what_makes_no_sense(
    kubectl: Kubectl, kind: str, spec: dict[str, Any], refused: str
) -> None:
    with pytest.raises(CommandFailed, match=refused):
        create(kubectl, {"apiVersion": API, "kind": kind, "metadata": {"name": "wrong"}, "spec": spec})
