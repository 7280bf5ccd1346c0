"""``up`` as a process: ready, private, exclusive, graceful, and going on where it was."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hack import kubectl as stock
from hack.program import Kubectl, Up

EXAMPLE = Path("nodewright/cli/examples/cluster.yaml").absolute()


@pytest.fixture(scope="session")
def kubectl_binary() -> Path:
    found = stock.find()
    if found is None:
        pytest.skip(stock.HOW_TO_GET_IT)
    return found


@pytest.fixture
def up(tmp_path: Path, kubectl_binary: Path) -> Iterator[Up]:
    with Up(tmp_path, kubectl_binary, f"--data-dir={tmp_path / 'data'}", "--no-controllers") as running:
        yield running


def nodewright(*arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nodewright.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def server_of(kubeconfig: Path) -> str:
    return str(json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]["server"])


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_once_it_says_ready_kubectl_works(up: Up) -> None:
    assert "Established" in up.kubectl("get", "crd", "machines.cluster.k8s.io", "-o", "yaml")


def test_it_tells_what_to_type_next(up: Up) -> None:
    told = [up.lines.get(timeout=10) for _ in range(5)]
    assert f"  export KUBECONFIG={up.kubeconfig}" in told
    example = next(line.split()[-1] for line in told if "kubectl apply" in line)
    assert Path(example).read_text() == EXAMPLE.read_text()


def test_keys_and_kubeconfig_are_private(up: Up) -> None:
    data = up.folder / "data"
    assert mode_of(up.kubeconfig) == 0o600
    assert mode_of(data) == 0o700
    open_to_others = [p for p in data.rglob("*") if p.is_file() and mode_of(p) & 0o077 and p.name != "example.yaml"]
    assert [p.name for p in open_to_others if p.suffix in (".key", ".pem", ".db", ".token")] == []


def test_it_listens_on_loopback_only(up: Up) -> None:
    assert urlsplit(server_of(up.kubeconfig)).hostname == "127.0.0.1"


def test_a_second_one_in_the_same_folder_is_refused_and_names_the_first(up: Up) -> None:
    second = nodewright("up", "--data-dir", str(up.folder / "data"))
    assert second.returncode == 1
    holder = (up.folder / "data" / "lock").read_text()
    assert f"in use by another control plane (process {holder})" in second.stderr
    assert "--data-dir" in second.stderr
    assert up.kubectl("get", "namespaces")


def test_sigterm_ends_it_in_good_order_and_a_restart_goes_on_at_the_same_address(up: Up) -> None:
    up.kubectl("create", "namespace", "kept")
    before = server_of(up.kubeconfig)
    assert up.stop() == 0
    up.start()
    assert server_of(up.kubeconfig) == before
    assert "kept" in up.kubectl("get", "namespaces")


def test_a_port_that_is_taken_is_refused_by_name(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = nodewright("up", "--data-dir", str(tmp_path / "d"), "--port", str(port), "--no-controllers")
    assert refused.returncode == 1
    assert f"port {port} can't be used" in refused.stderr
    assert "Choose another --port" in refused.stderr


def test_someone_elses_kubeconfig_is_never_overwritten(tmp_path: Path) -> None:
    theirs = tmp_path / "config"
    theirs.write_text(json.dumps({"clusters": [{"name": "production"}]}))
    refused = nodewright("up", "--in-memory", "--kubeconfig", str(theirs))
    assert refused.returncode == 1
    assert "is not ours" in refused.stderr
    assert json.loads(theirs.read_text()) == {"clusters": [{"name": "production"}]}


def test_a_kubeconfig_in_yaml_is_not_ours_either(tmp_path: Path) -> None:
    theirs = tmp_path / "config"
    theirs.write_text("apiVersion: v1\nclusters:\n- name: production\n")
    assert "is not ours" in nodewright("up", "--in-memory", "--kubeconfig", str(theirs)).stderr


def test_in_memory_and_a_folder_exclude_each_other() -> None:
    refused = nodewright("up", "--in-memory", "--data-dir", "/tmp/x")
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_made_is_named() -> None:
    refused = nodewright("up", "--data-dir", "/proc/nodewright")
    assert refused.returncode == 1
    assert "/proc/nodewright" in refused.stderr


def test_a_damaged_simulated_cloud_is_named_and_not_forgotten(tmp_path: Path) -> None:
    damaged = tmp_path / "data" / "simulated" / "default.jsonl"
    damaged.parent.mkdir(parents=True)
    damaged.write_text("not json\n{}\n")
    refused = nodewright("up", "--data-dir", str(tmp_path / "data"))
    assert refused.returncode == 1
    assert "default.jsonl, line 1" in refused.stderr
    assert damaged.read_text() == "not json\n{}\n"


class WithControllers:
    """The whole program at work, and the commands that read a cluster."""

    @pytest.fixture(scope="class")
    def at_work(self, tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path) -> Iterator[Kubectl]:
        with Up(tmp_path_factory.mktemp("work"), kubectl_binary, "--in-memory") as running:
            kubectl = running.kubectl
            kubectl("apply", "-f", str(EXAMPLE))
            kubectl.wait("jsonpath={.status.availableReplicas}=3", "machinedeployment/web")
            yield kubectl


class TestCommandsOnACluster(WithControllers):
    def test_describe_shows_the_whole_cluster_and_that_all_is_well(self, at_work: Kubectl) -> None:
        shown = nodewright("describe", "cluster", "dev", "--all-machines", "--kubeconfig", str(at_work.kubeconfig))
        assert shown.returncode == 0, shown.stderr
        assert "MachineDeployment/web" in shown.stdout
        assert "3/3 ready" in shown.stdout
        assert shown.stdout.count("─Node/") == 3

    def test_describe_of_something_that_is_not_there_says_what_is(self, at_work: Kubectl) -> None:
        shown = nodewright("describe", "md", "wob", "--kubeconfig", str(at_work.kubeconfig))
        assert shown.returncode == 1
        assert "There are: web" in shown.stderr

    def test_plan_of_a_settled_cluster_has_nothing_to_do(self, at_work: Kubectl) -> None:
        shown = nodewright("plan", "-o", "json", "--kubeconfig", str(at_work.kubeconfig))
        assert shown.returncode == 0, shown.stderr
        loud = [a for o in json.loads(shown.stdout)["objects"] for a in o["actions"] if not a["quiet"]]
        assert loud == []

    def test_plan_of_a_new_template_names_the_new_set_and_changes_nothing(
        self, at_work: Kubectl, tmp_path: Path
    ) -> None:
        file = tmp_path / "next.yaml"
        file.write_text(EXAMPLE.read_text().replace("1.33.0", "1.34.0"))
        before = at_work("get", "machinesets,machines", "-o", "name")
        shown = nodewright("plan", str(file), "--kubeconfig", str(at_work.kubeconfig))
        assert shown.returncode == 0, shown.stderr
        assert "create MachineSet web-" in shown.stdout
        assert "create Machine web-" in shown.stdout
        assert at_work("get", "machinesets,machines", "-o", "name") == before

    def test_install_again_changes_nothing(self, at_work: Kubectl) -> None:
        again = nodewright("install", "--force", "--kubeconfig", str(at_work.kubeconfig))
        assert again.returncode == 0, again.stderr
        assert again.stdout.count("unchanged") == 6
        assert "ready" in again.stdout


def test_commands_without_a_cluster_say_how_to_get_one(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    for command in (["describe", "md", "web"], ["plan"], ["install"]):
        refused = nodewright(*command, "--kubeconfig", str(missing))
        assert refused.returncode == 1
        assert str(missing) in refused.stderr
        assert "nodewright up" in refused.stderr


def test_run_refuses_a_controller_that_does_not_exist() -> None:
    refused = nodewright("run", "--controllers", "machine,nonsense")
    assert refused.returncode == 2
    assert "no controller named nonsense" in refused.stderr
    assert "machineset" in refused.stderr
