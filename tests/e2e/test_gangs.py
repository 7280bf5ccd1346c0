"""Gangs of Kubernetes' own API on the real plane: its kube-scheduler binds what the autoscaler planned, whole or not at
all. The autoscaler has the rights of deploy/autoscaler and deploy/components/gangs alone.

`make e2e-gangs-1.37` runs the same on Kubernetes 1.37, where the API is beta and has one feature gate.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from controllers.autoscaler.gangs import APIS
from hack.binaries import NEXT, TOOLS
from hack.program import Kubectl, Run
from tests.deploy.rights import granted, right
from tests.docs.pages import ROOT
from tests.e2e.scheduled import scheduled
from tests.e2e.test_autoscaler import with_rights_of_its_own
from tests.e2e.test_provisioning_requests import group
from tests.realplane import REAL
from tests.runtime.stub_server import until

pytestmark = [pytest.mark.kubectl, *REAL]

ON_NEXT = os.environ.get("NODEWRIGHT_KUBERNETES") == "next"
API = "scheduling.k8s.io/v1beta1" if ON_NEXT else "scheduling.k8s.io/v1alpha2"
GATES = f"--feature-gates=GenericWorkload=true{'' if ON_NEXT else ',GangScheduling=true'}"
SERVED = f"--runtime-config={API}=true"
SECONDS = 300.0


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path) -> Iterator[Kubectl]:
    folder = tmp_path_factory.mktemp("gangs")
    tools, flags = NEXT if ON_NEXT else TOOLS, (SERVED, GATES)
    with scheduled(folder, kubectl_binary, components=("gangs",), flags=flags, tools=tools) as (plane, found):
        more = (f"--gangs={API}", "--initial-node-group-backoff-duration=1h", "--max-node-group-backoff-duration=1h")
        with Run(folder, found), with_rights_of_its_own(folder / "autoscaler", plane, found, *more):
            yield found


@pytest.fixture(autouse=True)
async def tidy(kubectl: Kubectl) -> AsyncIterator[None]:
    """A MachineDeployment is gone before its Nodes are, and kube-scheduler would put the next gang on them."""
    yield
    kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
    kubectl("delete", "podgroups", "--all", "--wait=false")
    kubectl("delete", "md", "--all", "--wait", "--timeout=240s", timeout=300)
    await until(lambda: not listed(kubectl, "machines") and not listed(kubectl, "nodes"), SECONDS)


def gang(kubectl: Kubectl, name: str, count: int) -> None:
    """Each pod fills a Node."""
    policy = {"schedulingPolicy": {"gang": {"minCount": count}}}
    resources = {"requests": {"cpu": "3"}}
    spec = {
        "containers": [{"name": "main", "image": "example.com/train", "resources": resources}],
        "schedulingGroup": {"podGroupName": name},
        "terminationGracePeriodSeconds": 0,
    }
    items: list[dict[str, Any]] = [{"apiVersion": API, "kind": "PodGroup", "metadata": {"name": name}, "spec": policy}]
    items += [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-{index}", "labels": {"gang": name}},
            "spec": spec,
        }
        for index in range(count)
    ]
    kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def listed(kubectl: Kubectl, *what: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(kubectl("get", *what, "-o", "json"))["items"]
    return items


def bound(kubectl: Kubectl, name: str) -> int:
    return sum(1 for pod in listed(kubectl, "pods", "-l", f"gang={name}") if pod["spec"].get("nodeName"))


def replicas(kubectl: Kubectl) -> int:
    return sum(body["spec"]["replicas"] for body in listed(kubectl, "md"))


def told(kubectl: Kubectl, reason: str, text: str) -> bool:
    events = listed(kubectl, "events", "--field-selector", f"reason={reason}")
    return any(text in event["message"] for event in events)


async def test_of_two_gangs_that_fit_alone_one_gets_all_then_the_other(kubectl: Kubectl) -> None:
    """Four Nodes in two groups, and two gangs of three."""
    await group(kubectl, "left", 2)
    await group(kubectl, "right", 2)
    gang(kubectl, "first", 3)
    await until(lambda: bound(kubectl, "first") == 3, SECONDS)
    gang(kubectl, "second", 3)
    await until(lambda: told(kubectl, "NotTriggerScaleUp", "default/second needs room for 3 pods at once"), SECONDS)
    assert (bound(kubectl, "first"), bound(kubectl, "second"), replicas(kubectl)) == (3, 0, 3)
    kubectl("delete", "pods", "-l", "gang=first", "--force", "--grace-period=0")
    await until(lambda: bound(kubectl, "second") == 3, SECONDS)


async def test_a_stock_out_half_way_leaves_nothing(kubectl: Kubectl) -> None:
    await group(kubectl, "enough", 2)
    await group(kubectl, "short", 2, hosts=1)
    gang(kubectl, "train", 4)
    await until(lambda: told(kubectl, "NotTriggerScaleUp", "default/train rests until"), SECONDS)
    await until(lambda: not replicas(kubectl) and not listed(kubectl, "nodes"), SECONDS)
    assert bound(kubectl, "train") == 0


def test_the_component_grants_what_is_read_and_nothing_else() -> None:
    role = next(yaml.safe_load_all((ROOT / "deploy" / "components" / "gangs" / "rbac.yaml").read_text()))
    assert set(granted(role)) == {right(api.kind, verb) for api in APIS.values() for verb in ("list", "watch")}
