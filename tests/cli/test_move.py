"""``nodewright move`` between two planes with controllers and one simulated cloud, as processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hack.program import Up
from tests.cli.processes import EXAMPLE, following, nodewright
from tests.cli.test_create_cluster import deployment, machine, manifest, names_in, until

SECONDS = 400


@dataclass(frozen=True, slots=True)
class Planes:
    """``there`` is the API of Cluster prod, too: it moves into itself."""

    here: Up
    there: Up
    folder: Path

    def move(self, *more: str) -> Any:
        return nodewright(*self.command(*more), timeout=SECONDS)

    def command(self, *more: str, back: bool = False) -> list[str]:
        first, second = (self.there, self.here) if back else (self.here, self.there)
        ways = [f"--kubeconfig={first.kubeconfig}", f"--to-kubeconfig={second.kubeconfig}"]
        return ["move", "prod", *ways, f"--simulated-cloud={self.folder / 'cloud'}", *more]

    def has_workers(self, plane: Up, count: int) -> bool:
        """They are Ready, and the hosts are those of as many Machines."""
        status = [each.get("status") or {} for each in plane.kubectl.items("machinedeployments")]
        return [each.get("readyReplicas", 0) for each in status] == [count] and len(names_in(self.there, "nodes")) == (
            count + 1
        )


@pytest.fixture
def planes(tmp_path: Path, kubectl_binary: Path) -> Iterator[Planes]:
    """Cluster prod of one control plane and two workers is in the first one."""
    cloud = f"--simulated-cloud={tmp_path / 'cloud'}"
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    with (
        Up(tmp_path / "there", kubectl_binary, "--in-memory", cloud) as there,
        Up(tmp_path / "here", kubectl_binary, "--in-memory", cloud) as here,
    ):
        planes = Planes(here, there, tmp_path)
        file = manifest(tmp_path, there.kubeconfig, machine("cp-1", control_plane=True), deployment(2))
        here.kubectl("apply", "-f", str(file))
        until(lambda: planes.has_workers(here, 2))
        yield planes


def hosts_of(planes: Planes) -> dict[str, str]:
    """Node to host."""
    return {node["metadata"]["name"]: node["spec"]["providerID"] for node in planes.there.kubectl.items("nodes")}


@pytest.mark.e2e
def test_a_cluster_moves_into_itself_and_is_scaled_there(planes: Planes) -> None:
    hosts = hosts_of(planes)
    machines = names_in(planes.here, "machines")
    moved = planes.move()
    assert moved.returncode == 0, moved.stdout + moved.stderr
    assert "3 hosts" in moved.stdout
    assert names_in(planes.here, "clusters,machines,machinesets,machinedeployments") == []
    assert names_in(planes.there, "machines") == machines
    assert [
        each["metadata"].get("annotations", {}).get("nodewright.dev/moving")
        for each in planes.there.kubectl.items("machines")
    ] == [None] * 3
    until(lambda: planes.has_workers(planes.there, 2))
    assert hosts_of(planes) == hosts, "no host was made or removed"
    planes.there.kubectl("scale", "md/workers", "--replicas=3")
    until(lambda: planes.has_workers(planes.there, 3))
    assert hosts_of(planes).items() >= hosts.items()
    owners = {
        node["metadata"]["annotations"]["cluster.k8s.io/machine-uid"] for node in planes.there.kubectl.items("nodes")
    }
    assert owners == {each["metadata"]["uid"] for each in planes.there.kubectl.items("machines")}


@pytest.mark.e2e
def test_a_cluster_is_made_moves_into_itself_and_is_taken_down(tmp_path: Path, kubectl_binary: Path) -> None:
    """Its objects come back for that; each run may be repeated."""
    cloud = f"--simulated-cloud={tmp_path / 'cloud'}"
    (tmp_path / "there").mkdir()
    with Up(tmp_path / "there", kubectl_binary, "--in-memory", cloud) as there:
        file = manifest(tmp_path, there.kubeconfig, machine("cp-1", control_plane=True), deployment(2))
        data = [f"--data-dir={tmp_path / 'data'}", cloud]
        create = ["create", "cluster", "-f", str(file), *data, f"--kubeconfig-out={tmp_path / 'prod'}"]
        refused = nodewright(*create)
        assert refused.returncode == 2
        assert "--image" in refused.stderr
        create.append("--brings-controllers")
        for _ in range(2):
            made = nodewright(*create, timeout=SECONDS)
            assert made.returncode == 0, made.stdout + made.stderr
        assert len(names_in(there, "machines")) == 3
        there.kubectl("scale", "md/workers", "--replicas=3")
        until(lambda: len(names_in(there, "nodes")) == 4)
        until(lambda: there.kubectl.items("machinedeployments")[0]["status"].get("readyReplicas") == 3)
        delete = ["delete", "cluster", "prod", *data]
        with following(*delete) as process:
            assert process.stdout is not None
            while "handed over" not in process.stdout.readline():
                assert process.poll() is None
            process.kill()
        gone = nodewright(*delete, timeout=SECONDS)
        assert gone.returncode == 0, gone.stdout + gone.stderr
        assert names_in(there, "clusters,machines,machinedeployments,machinesets") == []
        assert names_in(there, "nodes") in ([], ["cp-1"]), "workers were drained and are gone"
        assert not list((tmp_path / "data" / "moved").iterdir())


@pytest.mark.e2e
def test_a_cluster_goes_by_way_of_an_archive(planes: Planes) -> None:
    """Read back with another key it stays where it is; with the right one it is scaled at the target."""
    hosts, folder = hosts_of(planes), planes.folder / "archives"
    phrase, wrong = planes.folder / "phrase", planes.folder / "wrong"
    for path, text in ((phrase, "correct horse battery\n"), (wrong, "another horse battery\n")):
        path.write_text(text)
        path.chmod(0o600)
    cloud = f"--simulated-cloud={planes.folder / 'cloud'}"
    out = ["move", "prod", f"--kubeconfig={planes.here.kubeconfig}", f"--to-directory={folder}", cloud]
    exported = nodewright(*out, f"--passphrase-file={phrase}", timeout=SECONDS)
    assert exported.returncode == 0, exported.stdout + exported.stderr
    assert names_in(planes.here, "clusters,machines,machinesets,machinedeployments") == []
    back = ["move", "--all", f"--from-directory={folder}", f"--kubeconfig={planes.there.kubeconfig}", cloud]
    refused = nodewright(*back, f"--passphrase-file={wrong}", timeout=SECONDS)
    assert refused.returncode == 1
    assert "can't be decrypted" in refused.stderr
    taken = nodewright(*back, f"--passphrase-file={phrase}", timeout=SECONDS)
    assert taken.returncode == 0, taken.stdout + taken.stderr
    assert list(folder.iterdir()) == []
    until(lambda: planes.has_workers(planes.there, 2))
    assert hosts_of(planes) == hosts, "no host was made or removed"
    planes.there.kubectl("scale", "md/workers", "--replicas=3")
    until(lambda: planes.has_workers(planes.there, 3))


@pytest.mark.e2e
def test_an_old_backup_claims_no_host_twice(tmp_path: Path, kubectl_binary: Path) -> None:
    """What was made after it is an orphan, and what the set lacks is made anew, with another UID."""
    cloud = f"--simulated-cloud={tmp_path / 'cloud'}"
    phrase = tmp_path / "phrase"
    phrase.write_text("correct horse battery\n")
    phrase.chmod(0o600)
    key, file = f"--passphrase-file={phrase}", tmp_path / "backup.age"
    (tmp_path / "up").mkdir()
    (tmp_path / "new").mkdir()
    with Up(tmp_path / "up", kubectl_binary, f"--data-dir={tmp_path / 'up' / 'data'}", cloud) as up:
        up.kubectl("apply", "-f", str(EXAMPLE))
        until(lambda: ready(up) == 3)
        first = {each["metadata"]["uid"]: each["spec"]["providerID"] for each in up.kubectl.items("machines")}
        taken = nodewright("backup", str(file), f"--data-dir={tmp_path / 'up' / 'data'}", key, timeout=SECONDS)
        assert taken.returncode == 0, taken.stderr
        up.kubectl("scale", "md/workers", "--replicas=4")
        until(lambda: ready(up) == 4)
        later = {each["spec"]["providerID"] for each in up.kubectl.items("machines")} - set(first.values())
    data = tmp_path / "new" / "data"
    restored = nodewright("restore", str(file), f"--data-dir={data}", key, timeout=SECONDS)
    assert restored.returncode == 0, restored.stderr
    with Up(tmp_path / "new", kubectl_binary, f"--data-dir={data}", cloud) as up:
        until(lambda: ready(up) == 3)
        up.kubectl("scale", "md/workers", "--replicas=4")
        until(lambda: ready(up) == 4)
        hosts = {each["metadata"]["uid"]: each["spec"]["providerID"] for each in up.kubectl.items("machines")}
        assert hosts.items() >= first.items(), "its own host is its own still"
        assert len(set(hosts.values())) == 4
        assert not later & set(hosts.values()), "the host that was claimed after the backup is nobody's here"


def ready(plane: Up) -> int:
    return sum((each.get("status") or {}).get("readyReplicas", 0) for each in plane.kubectl.items("machinedeployments"))


NETWORK_POLICIES = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "networkpolicies.networking.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, a stand-in"},
    },
    "spec": {
        "group": "networking.k8s.io",
        "scope": "Namespaced",
        "names": {"plural": "networkpolicies", "singular": "networkpolicy", "kind": "NetworkPolicy"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.mark.e2e
def test_the_controllers_of_an_image_are_put_there_and_waited_for_before_it_moves_in(
    tmp_path: Path, kubectl_binary: Path
) -> None:
    """The plane has no kubelets: the test plays the pods, and the plane's own controllers act for them.

    It has no NetworkPolicies either: before they are defined the command says so, and goes on when it is run again.
    """
    cloud = f"--simulated-cloud={tmp_path / 'cloud'}"
    (tmp_path / "there").mkdir()
    with Up(tmp_path / "there", kubectl_binary, "--in-memory", cloud) as there:
        file = manifest(tmp_path, there.kubeconfig, machine("cp-1", control_plane=True))
        data = [f"--data-dir={tmp_path / 'data'}", cloud, f"--kubeconfig-out={tmp_path / 'prod'}"]
        image = "registry.example/nodewright:0.1.0"
        create = ["create", "cluster", "-f", str(file), *data, "--image", image, "--with=bootstrap"]
        lacking = nodewright(*create, timeout=SECONDS)
        assert lacking.returncode == 1
        assert "does not serve networkpolicies" in lacking.stderr
        there.kubectl("create", "-f", "-", stdin=json.dumps(NETWORK_POLICIES))
        with following(*create) as process:
            until(lambda: process.poll() is not None or there.kubectl.items("networkpolicies", "-A") != [])
            until(lambda: process.poll() is not None or there.kubectl.items("deployments", "-A") != [])
            (pods,) = there.kubectl.items("deployments", "-A")
            status = {
                "observedGeneration": pods["metadata"]["generation"],
                "replicas": 2,
                "updatedReplicas": 2,
                "availableReplicas": 2,
            }
            assert names_in(there, "machines") == [], "nothing moves before its controllers are there"
            where = ("-n", pods["metadata"]["namespace"], "--subresource=status", "--type=merge")
            there.kubectl("patch", "deployment", pods["metadata"]["name"], *where, "-p", json.dumps({"status": status}))
            printed, wrong = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, printed + wrong
        assert pods["spec"]["template"]["spec"]["containers"][0]["image"] == image
        assert names_in(there, "machines") == ["cp-1"]
        gone = nodewright("delete", "cluster", "prod", *data[:2], timeout=SECONDS)
        assert gone.returncode == 0, gone.stdout + gone.stderr
        assert there.kubectl.items("poddisruptionbudgets,deployments", "-A") == [], "they would hold up the last drain"
