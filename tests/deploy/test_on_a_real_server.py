"""What lies in deploy/, on a real kube-apiserver with RBAC: it is accepted, and its rights are exactly enough.

The controllers run as two processes under the accounts of deploy/split (tokens by TokenRequest). The server's audit log
tells what each account asked for: a right that is missing shows as 403, a right that nobody used is needless.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.program import PATIENT, Kubectl, Output
from hack.realplane import SERVERS, RealPlane
from tests.cli.processes import EXAMPLE
from tests.deploy.rights import Right, granted
from tests.docs.pages import ROOT
from tests.realplane import REAL, require

pytestmark = [*REAL, pytest.mark.kubectl]

NAMESPACE = "nodewright-system"
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "userGroups": [f"system:serviceaccounts:{NAMESPACE}"]},
        {"level": "None"},
    ],
}
CLUSTER = "cluster.k8s.io"
RARE = {
    Right(CLUSTER, "machinesets", "get"): "a MachineSet of that name exists already",
    Right(CLUSTER, "machines", "get"): "a Machine of that name exists already, or its namesake was to be deleted",
    Right("", "pods", "delete"): "a pod that no eviction moved within the drain's deadlines",
    Right("", "pods", "get"): "a pod was to be deleted whose name another one has now",
    Right("", "nodes", "get"): "a Node was to be deleted whose name another one has now",
    Right(CLUSTER, "machinesets/finalizers", "update"): "asked for by an admission plugin, which writes no audit log",
    Right(CLUSTER, "machinedeployments/finalizers", "update"): "the same",
    Right("", "events", "patch"): "an Event that repeats itself after half a minute",
}
"""Rights that the story does not use, each with the moment that does; ``test_rights`` shows that plans need them."""

BROKEN = {
    "apiVersion": "cluster.k8s.io/v1alpha1",
    "kind": "Machine",
    "metadata": {"name": "broken", "namespace": "default"},
    "spec": {"providerConfig": {"value": {"apiVersion": "nobody.example.com/v1", "kind": "Nothing"}}},
}
"""An Event tells of it."""
MACHINE_CLASS = {
    "apiVersion": "cluster.k8s.io/v1alpha1",
    "kind": "MachineClass",
    "metadata": {"name": "faulty", "namespace": "default"},
    "providerSpec": {"apiVersion": "nobody.example.com/v1", "kind": "Nothing"},
}
"""An Event tells of it too."""
HEALTH_CHECK = {
    "apiVersion": "cluster.k8s.io/v1alpha1",
    "kind": "MachineHealthCheck",
    "metadata": {"name": "workers", "namespace": "default"},
    "spec": {
        "selector": {"matchLabels": {"pool": "workers"}},
        "unhealthyConditions": [{"type": "Ready", "status": "False", "timeout": "5m"}],
        "maxUnhealthy": "100%",
    },
}


class Server:
    """A real plane with deploy/split applied, and its audit log."""

    def __init__(self, plane: RealPlane, folder: Path, binary: Path) -> None:
        self.folder = folder
        self.kubectl = Kubectl(binary, plane.kubeconfig, folder / "kubectl-cache")
        self.applied = Output(-1, "", "not applied yet")
        self._plane = plane

    def kubeconfig_of(self, account: str) -> Path:
        """For the service account, with a token that TokenRequest gave for it."""
        token = self.kubectl("create", "token", account, f"--namespace={NAMESPACE}").strip()
        config = yaml.safe_load(self._plane.kubeconfig.read_text())
        config["users"] = [{"name": "account", "user": {"token": token}}]
        config["contexts"] = [
            {"name": "real", "context": {"cluster": "real", "user": "account", "namespace": NAMESPACE}}
        ]
        path = self.folder / f"{account}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(config))
        return path

    def audited(self, account: str) -> list[dict[str, Any]]:
        """What programs asked for as that account, as the server wrote it down; not what a test tried by kubectl."""
        user = f"system:serviceaccount:{NAMESPACE}:{account}"
        lines = (self.folder / "audit.log").read_text().splitlines()
        entries = [entry for entry in map(json.loads, lines) if entry["user"]["username"] == user]
        return [entry for entry in entries if not entry.get("userAgent", "").startswith("kubectl")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path) -> Iterator[Server]:
    require(SERVERS)
    folder = tmp_path_factory.mktemp("server")
    (folder / "policy.yaml").write_text(yaml.safe_dump(POLICY))
    flags = (
        f"--audit-policy-file={folder / 'policy.yaml'}",
        f"--audit-log-path={folder / 'audit.log'}",
        "--audit-log-mode=blocking",
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
        "--disable-admission-plugins=ServiceAccount",
    )
    with RealPlane(folder / "plane", flags) as plane:
        running = Server(plane, folder, kubectl_binary)
        running.applied = running.kubectl.run("apply", "--server-side", "-k", str(ROOT / "deploy" / "split"))
        assert running.applied.code == 0, running.applied.err
        running.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=180s", timeout=240)
        _let_play_kubelets(running.kubectl)
        yield running


def _let_play_kubelets(kubectl: Kubectl) -> None:
    """The simulated hosts have no kubelets of their own: the Machine controller's process plays them in this test."""
    role = yaml.safe_load_all((ROOT / "deploy/components/simulated-kubelets/rbac.yaml").read_text())
    kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump(next(role)))
    kubectl(
        "create", "clusterrolebinding", "kubelets", "--clusterrole=nodewright-simulated-kubelets",
        f"--serviceaccount={NAMESPACE}:nodewright-machine",
    )  # fmt: skip


@contextmanager
def process(server: Server, account: str, *arguments: str) -> Iterator[None]:
    """`run` as it runs in a pod: with the account's rights and the arguments of its Deployment."""
    kubeconfig = server.kubeconfig_of(account)
    command = [
        sys.executable,
        "-m",
        "nodewright.cli",
        "run",
        f"--kubeconfig={kubeconfig}",
        "--leader-elect",
        *PATIENT,
        *arguments,
    ]
    log = server.folder / f"{account}.log"
    with log.open("w") as errors:
        started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert started.stdout is not None
    with started:
        try:
            assert any(line.startswith("ready") for line in started.stdout), log.read_text()
            yield
        finally:
            started.send_signal(signal.SIGTERM)
        assert started.wait(120) == 0, log.read_text()


def live(server: Server) -> None:
    """The main job: create, scale, upgrade, roll, drain, shrink, delete."""
    kubectl = server.kubectl
    kubectl("apply", "-f", "-", stdin=json.dumps(MACHINE_CLASS))
    kubectl.wait("condition=Accepted=False", "machineclass/faulty")
    kubectl("apply", "-f", str(EXAMPLE))
    kubectl.wait("jsonpath={.status.availableReplicas}=3", "md/workers")
    kubectl("scale", "md/workers", "--replicas=2")
    kubectl("apply", "-f", "-", stdin=json.dumps(HEALTH_CHECK))
    kubectl.wait("jsonpath={.status.expectedMachines}=2", "mhc/workers")
    sick = _that_stay(kubectl)[0]["metadata"]["name"]
    kubectl("annotate", f"machine/{sick}", "cluster.x-k8s.io/remediate-machine=yes")
    kubectl.wait("delete", f"machine/{sick}")
    kubectl("delete", "mhc/workers")
    for value in ("one", "two", "three"):
        template = {"spec": {"providerConfig": {"value": {"zone": value}}}}
        _merge(kubectl, "md/workers", {"spec": {"template": template}})
        _rolled_out(kubectl)
    _merge(kubectl, "md/workers", {"spec": {"template": {"spec": {"metadata": {"labels": {"tier": "web"}}}}}})
    nodes = [machine["status"]["nodeRef"]["name"] for machine in _that_stay(kubectl)]
    kubectl.wait("jsonpath={.metadata.labels.tier}=web", *(f"node/{name}" for name in nodes))
    kubectl("apply", "-f", "-", stdin=json.dumps(BROKEN))
    kubectl.wait("jsonpath={.status.errorReason}=InvalidConfiguration", "machine/broken")
    kubectl("apply", "-f", "-", stdin=json.dumps(_pod_on(nodes[0])))
    _merge(kubectl, "cluster/demo", {"metadata": {"finalizers": ["cluster.cluster.k8s.io"]}})
    kubectl("scale", "md/workers", "--replicas=0")
    kubectl("delete", "machine/broken", "--wait=false")
    kubectl.wait("delete", "machines", "--all")
    kubectl.wait("delete", f"node/{nodes[0]}")
    kubectl("delete", "cluster/demo", "--wait=false")
    kubectl("delete", "md/workers", "--cascade=background")
    kubectl("delete", "ms", "--all")  # here is no controller-manager to collect what the deployment has left
    kubectl.wait("delete", "cluster/demo")


def _merge(kubectl: Kubectl, what: str, patch: dict[str, Any]) -> None:
    kubectl("patch", what, "--type=merge", "-p", json.dumps(patch))


def _rolled_out(kubectl: Kubectl) -> None:
    generation = kubectl("get", "md/workers", "-o", "jsonpath={.metadata.generation}")
    for field in (f"observedGeneration={generation}", "updatedReplicas=2", "replicas=2", "availableReplicas=2"):
        path, _, value = field.partition("=")
        kubectl.wait(f"jsonpath={{.status.{path}}}={value}", "md/workers")


def _that_stay(kubectl: Kubectl) -> list[dict[str, Any]]:
    """The Machines that nobody has deleted."""
    return [machine for machine in kubectl.items("machines") if not machine["metadata"].get("deletionTimestamp")]


def _pod_on(node: str) -> dict[str, Any]:
    """It goes at once when it is evicted: there is no kubelet that would end it."""
    containers = [{"name": "c", "image": "i"}]
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": containers}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "busy", "namespace": "default"}, "spec": spec}


@pytest.fixture(scope="module")
def lived(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """The server after a life of a cluster under exactly the rights of deploy/split."""
    cloud = f"--simulated-cloud={tmp_path_factory.mktemp('cloud')}"
    with ExitStack() as stack:
        stack.enter_context(process(server, "nodewright-rest", "--controllers=*,-machine", "--no-simulated-kubelets"))
        stack.enter_context(process(server, "nodewright-machine", "--controllers=machine", cloud))
        live(server)
    return server


def rights_of(kubectl: Kubectl, account: str) -> set[Right]:
    """By the bindings of deploy/split, in the rendered manifests."""
    docs = [doc for doc in yaml.safe_load_all(kubectl("kustomize", str(ROOT / "deploy" / "split"))) if doc]
    roles = {(doc["kind"], doc["metadata"]["name"]): doc for doc in docs if doc["kind"] in {"Role", "ClusterRole"}}
    found: set[Right] = set()
    for doc in docs:
        if doc["kind"] in {"RoleBinding", "ClusterRoleBinding"} and doc["subjects"][0]["name"] == account:
            found.update(granted(roles[doc["roleRef"]["kind"], doc["roleRef"]["name"]]))
    return found


def test_the_manifests_are_taken_without_a_warning(server: Server) -> None:
    """The namespace enforces the restricted Pod Security Standard: a Deployment that breaks it is warned of."""
    assert "Warning" not in server.applied.err
    namespace = server.kubectl.json("get", "namespace", NAMESPACE)
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert server.kubectl.items("networkpolicies", f"--namespace={NAMESPACE}")


@pytest.mark.parametrize("account", ["nodewright-machine", "nodewright-rest"])
def test_no_account_lacks_a_right_and_none_has_a_needless_one(lived: Server, account: str) -> None:
    entries = lived.audited(account)
    refused = [(e["verb"], e["requestURI"]) for e in entries if e["responseStatus"]["code"] == 403]
    assert refused == []
    used = {_right(entry) for entry in entries if "objectRef" in entry and not _by_a_kubelet(entry)} - EVERYBODY
    given = rights_of(lived.kubectl, account)
    assert sorted(map(str, given - used - set(RARE))) == [], "needless rights"
    assert sorted(map(str, used - given)) == [], "rights that come from somewhere else"


EVERYBODY = {Right("authorization.k8s.io", "selfsubjectaccessreviews", "create")}
"""The role system:basic-user: whoever is logged in may ask what it may do."""


def _right(entry: dict[str, Any]) -> Right:
    what = entry["objectRef"]
    subresource = what.get("subresource", "")
    resource = f"{what['resource']}/{subresource}" if subresource else what["resource"]
    return Right(what.get("apiGroup", ""), resource, entry["verb"])


def _by_a_kubelet(entry: dict[str, Any]) -> bool:
    return bool(entry.get("userAgent", "").startswith("simulated-kubelet"))


def test_an_account_may_do_nothing_else(server: Server) -> None:
    """The comparison means something: what was not granted is refused."""
    strange = Kubectl(
        server.kubectl.binary, server.kubeconfig_of("nodewright-rest"), server.folder / "kubectl-cache-rest"
    )
    assert "forbidden" in strange.fails("get", "secrets"), "nobody learns which Secrets there are"
    assert "forbidden" in strange.fails("create", "secret", "generic", "any")
    assert "forbidden" in strange.fails("get", "lease/any", "--namespace=kube-system")
    assert "forbidden" in strange.fails("delete", "node", "any")
