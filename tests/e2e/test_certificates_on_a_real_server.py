"""Health checks and certificate requests as kubelets send them, on a real kube-apiserver; no kubelet runs here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.program import PATIENT, Kubectl
from hack.realplane import SERVERS, RealPlane
from tests.controllers.certificatesigningrequest.requests import (
    CLIENT_USAGES,
    SERVING_USAGES,
    RequestBuilder,
    client,
    dns,
    ips,
    serving,
)
from tests.e2e.manifests import CLUSTER, machine_set
from tests.e2e.test_health_check import break_node, health_check
from tests.realplane import REAL, require

pytestmark = [*REAL, pytest.mark.kubectl]

BOOTSTRAP = ("system:bootstrap:abcdef", "system:bootstrappers")
RIGHTS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kubelets-ask-for-certificates}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:node-bootstrapper}
subjects:
  - {apiGroup: rbac.authorization.k8s.io, kind: Group, name: system:bootstrappers}
  - {apiGroup: rbac.authorization.k8s.io, kind: Group, name: system:nodes}
"""


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path) -> Iterator[Kubectl]:
    require(SERVERS)
    folder = tmp_path_factory.mktemp("plane")
    with RealPlane(folder) as plane:
        program = [sys.executable, "-m", "nodewright.cli"]
        subprocess.run([*program, "install", f"--kubeconfig={plane.kubeconfig}"], check=True, timeout=600)
        command = [*program, "run", f"--kubeconfig={plane.kubeconfig}", "--controllers=*,certificatesigningrequest"]
        command += PATIENT
        with (folder / "run.log").open("w") as log:
            running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert running.stdout is not None
        said = next((line for line in running.stdout if line.startswith("ready")), "")
        assert "certificatesigningrequest" in said, (folder / "run.log").read_text()
        found = Kubectl(kubectl_binary, plane.kubeconfig, folder / "cache")
        for text in (CLUSTER, RIGHTS):
            found("apply", "-f", "-", stdin=text)
        yield found
        running.terminate()
        running.communicate(timeout=120)


def ask(kubectl: Kubectl, csr: RequestBuilder, username: str, group: str) -> None:
    """As ``username``: the server writes down who asked."""
    body = csr.build()
    spec = {key: body["spec"][key] for key in ("request", "signerName", "usages")}
    wanted = {
        "apiVersion": body["apiVersion"],
        "kind": body["kind"],
        "metadata": {"name": body["metadata"]["name"]},
        "spec": spec,
    }
    identity = (f"--as={username}", f"--as-group={group}", "--as-group=system:authenticated")
    kubectl("create", "-f", "-", *identity, stdin=json.dumps(wanted))


def test_a_sick_machine_is_replaced(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=machine_set("healing", 3))
    kubectl("apply", "-f", "-", stdin=health_check("healing"))
    kubectl.wait("jsonpath={.status.currentHealthy}=3", "mhc/healing")
    sick = kubectl.items("ma", "-l", "pool=healing")[0]
    break_node(kubectl, sick)
    kubectl.wait("delete", f"ma/{sick['metadata']['name']}")
    kubectl.wait("jsonpath={.status.currentHealthy}=3", "mhc/healing")


def test_a_kubelets_certificates_are_decided_by_its_machine(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=machine_set("asking", 1))
    kubectl.wait("jsonpath={.status.readyReplicas}=1", "ms/asking")
    (machine,) = kubectl.items("ma", "-l", "pool=asking")
    name = machine["status"]["nodeRef"]["name"]
    (address,) = [a["address"] for a in machine["status"]["addresses"] if a["type"] == "InternalIP"]
    itself = (f"system:node:{name}", "system:nodes")

    good = serving("good").asking(common_name=itself[0], alternatives=(*dns(name), *ips(address)))
    renewed = client("renewed").asking(common_name=itself[0], number=1)
    foreign = serving("foreign").asking(common_name="system:node:stranger", alternatives=dns("stranger"))
    for csr, usages in ((good, SERVING_USAGES), (renewed, CLIENT_USAGES)):
        ask(kubectl, csr.usages(*usages), *itself)
        kubectl.wait("condition=Approved", f"csr/{csr.metadata['name']}")
    ask(kubectl, foreign, "system:node:stranger", "system:nodes")

    late = client("late").asking(common_name=itself[0], number=2)
    ask(kubectl, late, *BOOTSTRAP)
    thief = client("thief").asking(common_name=itself[0], number=3)
    ask(kubectl, thief, "system:node:stranger", "system:nodes")
    kubectl.wait("condition=Denied", "csr/thief")
    for left in ("foreign", "late"):
        assert "conditions" not in kubectl.json("get", "csr", left).get("status", {}), left
