"""``create cluster`` and ``delete cluster`` as processes: simulated hosts, and a second plane as the new cluster."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import pty
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.program import Up
from tests.cli.processes import EXAMPLE, following, nodewright

pytestmark = pytest.mark.e2e

GROUP = "cluster.k8s.io/v1alpha1"
SECONDS = 400


@pytest.fixture
def prod(tmp_path: Path, kubectl_binary: Path) -> Iterator[Up]:
    """The API of the cluster that is made."""
    (tmp_path / "prod").mkdir()
    with Up(tmp_path / "prod", kubectl_binary, "--in-memory", "--no-controllers") as running:
        yield running


def machine(name: str, *, control_plane: bool = False, **config: Any) -> dict[str, Any]:
    value = {"apiVersion": "simulated.nodewright.dev/v1alpha1", "kind": "SimulatedMachineConfig", **config}
    versions = {"kubelet": "1.36.3"} | ({"controlPlane": "1.36.3"} if control_plane else {})
    labels = {"cluster.k8s.io/cluster-name": "prod"}
    spec = {"providerConfig": {"value": value}, "versions": versions}
    return {"apiVersion": GROUP, "kind": "Machine", "metadata": {"name": name, "labels": labels}, "spec": spec}


def deployment(replicas: int) -> dict[str, Any]:
    labels = {"pool": "workers", "cluster.k8s.io/cluster-name": "prod"}
    spec = machine("any")["spec"]
    return {
        "apiVersion": GROUP,
        "kind": "MachineDeployment",
        "metadata": {"name": "workers"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"pool": "workers"}},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def manifest(folder: Path, kubeconfig: Path, *objects: dict[str, Any]) -> Path:
    data = {"value": base64.b64encode(kubeconfig.read_bytes()).decode()}
    every: list[dict[str, Any]] = [
        {"apiVersion": GROUP, "kind": "Cluster", "metadata": {"name": "prod"}, "spec": {}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "prod-kubeconfig"}, "data": data},
        *objects,
    ]
    path = folder / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": every}))
    return path


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.1)


def names_in(up: Up, kind: str) -> list[str]:
    return [each["metadata"]["name"] for each in up.kubectl.items(kind)]


def test_one_command_makes_a_cluster_and_one_takes_it_down(tmp_path: Path, prod: Up, kubectl_binary: Path) -> None:
    file = manifest(tmp_path, prod.kubeconfig, machine("cp-1", control_plane=True), deployment(2))
    (tmp_path / "one.yaml").write_text("{apiVersion: v1, kind: Namespace, metadata: {name: net}}\n")
    (tmp_path / "two.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: made, namespace: net}}\n")
    out, data = tmp_path / "prod.kubeconfig", str(tmp_path / "data")
    add = [f"--addons={tmp_path / name}" for name in ("one.yaml", "two.yaml")]
    told = ["create", "cluster", "-f", str(file), "--keep", "--data-dir", data, f"--kubeconfig-out={out}", *add]
    made = nodewright(*told, timeout=SECONDS)
    assert made.returncode == 0, made.stderr + made.stdout
    assert "Cluster default/prod is ready after" in made.stdout
    assert "Machine/cp-1: " in made.stdout
    assert f"nodewright delete cluster prod --data-dir {data}" in made.stdout
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert out.read_bytes() == prod.kubeconfig.read_bytes()
    assert len(names_in(prod, "nodes")) == 3
    assert "made" in prod.kubectl("get", "configmaps", "-n", "net")

    again = nodewright(*told, timeout=SECONDS)
    assert again.returncode == 0, again.stderr
    assert len(names_in(prod, "nodes")) == 3

    (tmp_path / "up").mkdir()
    with Up(tmp_path / "up", kubectl_binary, f"--data-dir={data}") as up:
        up.kubectl("scale", "md/workers", "--replicas=3")
        up.kubectl.wait("jsonpath={.status.readyReplicas}=3", "md/workers")
    assert len(names_in(prod, "nodes")) == 4

    gone = nodewright("delete", "cluster", "prod", "--data-dir", data, timeout=SECONDS)
    assert gone.returncode == 0, gone.stderr + gone.stdout
    assert gone.stdout.index("delete MachineDeployment default/workers") < gone.stdout.index(
        "delete Machine default/cp-1"
    )
    assert [name for name in names_in(prod, "nodes") if name != "cp-1"] == []
    with Up(tmp_path / "up", kubectl_binary, f"--data-dir={data}") as up:
        assert names_in(up, "clusters,machinedeployments,machinesets,machines") == []
    missing = nodewright("delete", "cluster", "prod", "--data-dir", data)
    assert missing.returncode == 1
    assert "Cluster default/prod does not exist" in missing.stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_stopped_and_run_again_it_goes_on(tmp_path: Path, prod: Up, how: signal.Signals) -> None:
    slow = machine("cp-1", control_plane=True, bootSeconds=15)  # longer than the test needs to stop it
    file = manifest(tmp_path, prod.kubeconfig, slow, deployment(2))
    out = tmp_path / "prod.kubeconfig"
    told = [
        "create",
        "cluster",
        "-f",
        str(file),
        "--keep",
        f"--data-dir={tmp_path / 'data'}",
        f"--kubeconfig-out={out}",
    ]
    with following(*told) as process:
        assert process.stdout is not None
        while "objects applied" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(how)
        process.communicate(timeout=SECONDS)
    assert process.returncode == (130 if how is signal.SIGINT else -signal.SIGKILL)
    assert not out.exists()
    made = nodewright(*told, timeout=SECONDS)
    assert made.returncode == 0, made.stderr + made.stdout
    assert len(names_in(prod, "nodes")) == 3


def test_a_cluster_without_an_api_of_its_own_has_its_nodes_in_the_plane(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "nodewright.cli", "create", "cluster", "-f", str(EXAMPLE), "--keep"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert made.returncode == 0, made.stderr
    assert f"kubeconfig {tmp_path / '.nodewright/up/kubeconfig'}" in made.stdout
    assert not (tmp_path / "demo.kubeconfig").exists()


def test_the_kubeconfig_of_another_cluster_is_not_overwritten(tmp_path: Path, prod: Up) -> None:
    file = manifest(tmp_path, prod.kubeconfig, machine("m"))
    out = tmp_path / "prod.kubeconfig"
    out.write_text(prod.kubeconfig.read_text().replace("127.0.0.1", "127.0.0.2"))
    before = out.read_bytes()
    told = [
        "create",
        "cluster",
        "-f",
        str(file),
        "--keep",
        f"--data-dir={tmp_path / 'data'}",
        f"--kubeconfig-out={out}",
    ]
    refused = nodewright(*told)
    assert refused.returncode == 1
    assert "is not the kubeconfig of this cluster" in refused.stderr
    assert "--kubeconfig-out" in refused.stderr
    assert out.read_bytes() == before


def test_without_keep_it_says_what_is_missing_and_does_nothing(tmp_path: Path) -> None:
    refused = nodewright("create", "cluster", "-f", str(EXAMPLE), "--data-dir", str(tmp_path / "data"))
    assert refused.returncode == 2
    assert "--keep" in refused.stderr
    assert not (tmp_path / "data").exists()


def test_what_is_wrong_with_the_files_is_said_as_validate_says_it(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(EXAMPLE.read_text().replace("replicas: 3", "replicas: many"))
    refused = nodewright("create", "cluster", "-f", str(bad), "--keep", "--data-dir", str(tmp_path / "data"))
    found = nodewright("validate", str(bad), "-q")
    assert refused.returncode == 1
    assert found.stdout.strip() in refused.stderr
    assert not (tmp_path / "data").exists()


def test_what_can_not_be_removed_is_named_with_the_reason(tmp_path: Path, prod: Up, kubectl_binary: Path) -> None:
    file = manifest(tmp_path, prod.kubeconfig, machine("held"))
    data = f"--data-dir={tmp_path / 'data'}"
    made = nodewright("create", "cluster", "-f", str(file), "--keep", data, f"--kubeconfig-out={tmp_path / 'k'}")
    assert made.returncode == 0, made.stderr
    (tmp_path / "up").mkdir()
    with Up(tmp_path / "up", kubectl_binary, data) as up:
        patch = '{"metadata":{"finalizers":["example.com/held","machine.cluster.k8s.io"]}}'
        up.kubectl("patch", "machine", "held", "--type=merge", "-p", patch)
    stuck = nodewright("delete", "cluster", "prod", data, "--timeout=10", timeout=SECONDS)
    assert stuck.returncode == 1
    assert "Machine held" in stuck.stderr


def test_killed_again_and_again_it_makes_nothing_twice(tmp_path: Path, prod: Up, kubectl_binary: Path) -> None:
    """Each run is killed one line later than the one before."""
    slow = {"bootSeconds": 1}
    file = manifest(tmp_path, prod.kubeconfig, machine("cp-1", control_plane=True, **slow), machine("w-1", **slow))
    data, out = f"--data-dir={tmp_path / 'data'}", f"--kubeconfig-out={tmp_path / 'k'}"
    for lines in range(1, 6):
        with following("create", "cluster", "-f", str(file), "--keep", data, out) as process:
            assert process.stdout is not None
            for _ in range(lines):
                process.stdout.readline()
            process.send_signal(signal.SIGKILL)
    made = nodewright("create", "cluster", "-f", str(file), "--keep", data, out, timeout=SECONDS)
    assert made.returncode == 0, made.stdout + made.stderr
    assert sorted(names_in(prod, "nodes")) == ["cp-1", "w-1"]
    with following("delete", "cluster", "prod", data) as process:
        assert process.stdout is not None
        assert "delete Machine default/w-1" in process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    gone = nodewright("delete", "cluster", "prod", data, timeout=SECONDS)
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert "w-1" not in names_in(prod, "nodes")
    (tmp_path / "up").mkdir()
    with Up(tmp_path / "up", kubectl_binary, data) as up:
        assert names_in(up, "clusters,machines") == []


def test_on_a_terminal_it_draws_the_tree(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "nodewright.cli", "create", "cluster", "-f", str(EXAMPLE), "--keep"]
    reader, writer = pty.openpty()
    seen = b""
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "50"}
    with subprocess.Popen(command, cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, env=environment) as process:
        os.close(writer)
        with contextlib.suppress(OSError):  # what a terminal whose other end is closed gives on Linux
            while piece := os.read(reader, 65536):
                seen += piece
        assert process.wait(SECONDS) == 0
    os.close(reader)
    text = seen.decode()
    assert "MachineDeployment/workers" in text
    assert "Cluster default/demo is ready after" in text
