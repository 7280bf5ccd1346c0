"""Hosts that cannot join say why, within seconds; those of one kubelet version are rolled to the next."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack import binaries
from hack.hosts import cluster
from hack.hosts.lab import Lab
from hack.hosts.mirror import PROGRAMS, Mirror
from hack.program import Kubectl
from hack.realplane import RealPlane
from tests.hosts.joining import BEFORE, VERSION, apply, deployment, items, programs, secrets_to_join, until
from tests.hosts.test_join import kubectl, plane

__all__ = ["kubectl", "plane"]
pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.kubectl]


@pytest.fixture(scope="module")
def mirror(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    with Mirror(tmp_path_factory.mktemp("mirror"), lab.net.gateway) as running:
        running.add(VERSION, programs())
        running.add(BEFORE, programs(older=True))
        yield running


def here(archives: dict[str, Any]) -> dict[str, Any]:
    bootstrap: dict[str, Any] = {
        "archives": archives,
        "nodeRegistration": {"ignorePreflightErrors": [cluster.NO_CGROUP_2]},
    }
    meta = {"name": "here", "namespace": "default"}
    return {
        "apiVersion": "cluster.k8s.io/v1alpha1", "kind": "Cluster", "metadata": meta, "spec": {"bootstrap": bootstrap}
    }  # fmt: skip


def of_version(lab: Lab, name: str, replicas: int, version: str, **bootstrap: Any) -> dict[str, Any]:
    made = deployment(lab, name, replicas)
    made["spec"]["template"]["spec"]["versions"]["kubelet"] = version.removeprefix("v")
    if bootstrap:
        made["spec"]["template"]["spec"]["bootstrap"] = bootstrap
    return made


def joined(kubectl: Kubectl) -> dict[str, Any]:
    """NodeJoined of the first Machine."""
    for machine in items(kubectl, "machines"):
        for condition in machine.get("status", {}).get("conditions") or ():
            if condition["type"] == "NodeJoined":
                return dict(condition)
    return {}


def fails_with(reason: str, lab: Lab, kubectl: Kubectl) -> dict[str, Any]:
    """NodeJoined, once it has that reason; else what is known of the host is shown."""
    try:
        until(lambda: joined(kubectl).get("reason") == reason, 480)
    except AssertionError:
        hosts = [lab.guest(seen.record) for seen in lab.hosts()]
        consoles = [host.console.read_text(errors="replace")[-3000:] for host in hosts]
        state = [
            host.execute("cd /var/lib/nodewright/bootstrap; ls -la; ps ax | grep report.py").stdout for host in hosts
        ]
        events = kubectl("get", "events", "-n", "nodewright-bootstrap") + kubectl("get", "machines", "-o", "yaml")
        logs = [path.read_text(errors="replace")[-3000:] for path in _logs(kubectl)]
        raise AssertionError("\n".join([str(joined(kubectl)), events, *state, *consoles, *logs])) from None
    return joined(kubectl)


def kubelets(kubectl: Kubectl) -> list[str]:
    return [node["status"]["nodeInfo"]["kubeletVersion"] for node in items(kubectl, "nodes")]


def test_a_deployment_is_rolled_to_the_next_kubelet_version_and_scaled_to_nothing(
    lab: Lab, mirror: Mirror, kubectl: Kubectl
) -> None:
    apply(kubectl, here(mirror.archives(programs())))
    apply(kubectl, of_version(lab, "rolled", 3, BEFORE, archives=mirror.archives(programs(older=True))))
    kubectl.wait("jsonpath={.status.readyReplicas}=3", "md/rolled", timeout=360)
    until(lambda: kubelets(kubectl) == [BEFORE] * 3)

    kubectl("scale", "md/rolled", "--replicas=5")
    kubectl.wait("jsonpath={.status.readyReplicas}=5", "md/rolled", timeout=360)
    apply(kubectl, of_version(lab, "rolled", 5, VERSION))
    until(lambda: sorted(kubelets(kubectl)) == [VERSION] * 5, 600)
    kubectl.wait("jsonpath={.status.readyReplicas}=5", "md/rolled", timeout=300)

    kubectl("scale", "md/rolled", "--replicas=0")
    kubectl("wait", "--for=delete", "machines", "--all", "--timeout=300s", timeout=360)
    until(lambda: items(kubectl, "nodes") == [])
    until(lambda: lab.hosts() == [])
    until(lambda: secrets_to_join(kubectl) == [])
    kubectl("delete", "md", "rolled", "--wait")


FAILURES = {
    "wrong mirror": ("PackageUnavailable", "in the repository"),
    "mirror away": ("MirrorUnreachable", "can't be reached"),
    "wrong checksum": ("ChecksumMismatch", "is not what its checksum says"),
    "black hole": ("MirrorUnreachable", "can't be reached"),
}


def test_a_host_that_can_not_report_is_told_of_by_its_console(lab: Lab, mirror: Mirror, kubectl: Kubectl) -> None:
    """Its endpoint leads nowhere, so it can neither join nor say why; the lab's provider reads the console."""
    apply(kubectl, here(mirror.archives(programs())))
    nowhere = "https://192.0.2.1:6443"
    apply(kubectl, of_version(lab, "mute", 1, VERSION, joinTimeout="40s", endpoint=nowhere))
    said = fails_with("JoinTimedOut", lab, kubectl)
    until(lambda: "and said nothing; last on its console: " in joined(kubectl)["message"], 300)
    said = joined(kubectl)
    assert len(said["message"]) <= 1024
    assert said["message"].isprintable()
    kubectl("delete", "md", "mute", "--wait", "--timeout=300s", timeout=360)
    until(lambda: lab.hosts() == [])


@pytest.fixture
def black_hole(lab: Lab) -> Iterator[str]:
    """An address that swallows packets: of a port whose queue is full, Linux drops each further SYN."""
    with contextlib.ExitStack() as held:
        server = held.enter_context(socket.create_server((lab.net.gateway, 0), backlog=0))
        for _ in range(3):
            waiting = held.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield f"http://{lab.net.gateway}:{server.getsockname()[1]}"


@pytest.mark.parametrize("trouble", FAILURES)
def test_a_host_that_can_not_join_says_why_and_leaves_nothing(
    trouble: str, lab: Lab, mirror: Mirror, kubectl: Kubectl, black_hole: str
) -> None:
    away, wrong = f"http://{lab.net.gateway}:9", mirror.archives(programs(), "/elsewhere")
    archives = {
        "wrong mirror": wrong,
        "mirror away": {"kubernetes": {**wrong["kubernetes"], "mirror": away}},
        "black hole": {"kubernetes": {**wrong["kubernetes"], "mirror": black_hole}},
        "wrong checksum": {"kubernetes": {"mirror": mirror.url, "sha256": dict.fromkeys(PROGRAMS, "0" * 64)}},
    }[trouble]
    apply(kubectl, here(archives))
    apply(kubectl, of_version(lab, "failing", 1, VERSION))
    reason, cause = FAILURES[trouble]
    said = fails_with(reason, lab, kubectl)
    assert "'install kubelet " in said["message"]
    assert cause in said["message"]
    kubectl.until(f"install kubelet {VERSION.removeprefix('v')}", "describe", "machines")

    (secret,) = _token_secrets(kubectl)
    (seen,) = lab.hosts()
    told = "".join([
        kubectl("get", "events,machines,machinesets,machinedeployments,clusters,nodes", "-A", "-o", "json"),
        lab.guest(seen.record).console.read_text(errors="replace"),
        *(path.read_text(errors="replace") for path in _logs(kubectl)),
    ])  # fmt: skip
    assert secret not in told
    assert base64.b64encode(secret.encode()).decode() not in told

    kubectl("delete", "md", "failing", "--cascade=foreground", "--wait", "--timeout=300s", timeout=360)
    until(lambda: items(kubectl, "machines") == [])
    until(lambda: items(kubectl, "nodes") == [])
    until(lambda: lab.hosts() == [])
    until(lambda: secrets_to_join(kubectl) == [])


def test_a_host_goes_on_at_the_failed_step_once_the_mirror_is_there(
    lab: Lab, plane: RealPlane, mirror: Mirror, kubectl: Kubectl, tmp_path: Path
) -> None:
    late = Mirror(tmp_path / "late", lab.net.gateway)
    with late:
        apply(kubectl, here(late.archives(programs())))
        apply(kubectl, of_version(lab, "late", 1, VERSION))
        fails_with("PackageUnavailable", lab, kubectl)
        late.add(VERSION, {name: binaries.ensure(name) for name in PROGRAMS})
        kubectl.wait("jsonpath={.status.readyReplicas}=1", "md/late", timeout=360)
        kubectl.wait("condition=NodeJoined", "machines", "--all", timeout=300)
        kubectl("delete", "md", "late", "--cascade=foreground", "--wait", "--timeout=300s", timeout=360)


def _token_secrets(kubectl: Kubectl) -> list[str]:
    found = json.loads(kubectl("get", "secrets", "-n", "kube-system", "-o", "json"))["items"]
    return [
        base64.b64decode(each["data"]["token-secret"]).decode()
        for each in found
        if "nodewright.dev/machine-uid" in (each["metadata"].get("labels") or {})
    ]


def _logs(kubectl: Kubectl) -> list[Path]:
    return sorted(kubectl.cache.parent.glob("*.log"))
