"""A version that does not work, on a real host: it goes back by itself, and the rollout stops and says why."""

from __future__ import annotations

import json

import pytest

from hack.hosts.mirror import checksums
from tests.hosts import sshpools
from tests.hosts.clusters import making
from tests.hosts.clusters.test_control_plane_upgrade import Scene, scene
from tests.hosts.joining import BEFORE, VERSION, apply, broken, items, until

pytestmark = [pytest.mark.hosts, pytest.mark.hosts_long, pytest.mark.slow, pytest.mark.kubectl]
__all__ = ["scene"]
TITLE = f"controlplane/{making.NAME}"


def test_a_host_whose_new_kubelet_does_not_run_gets_the_one_before(scene: Scene) -> None:
    home, guest, bad = scene.home, scene.pool.guests["rack1"], broken(scene.folder)
    config = {"apiVersion": "ssh.nodewright.dev/v1alpha1", "kind": "SSHMachineConfig", "pool": sshpools.POOL}
    apply(home, scene.cluster(older=True))
    apply(home, making.control_plane(1, config, older=True, rollout={"inPlace": "Require"}))
    home.wait("jsonpath={.status.readyReplicas}=1", TITLE, timeout=480)
    there = scene.there()
    there("create", "configmap", "kept", "--from-literal=data=intact")

    scene.mirror.add(VERSION, bad)
    cluster = scene.cluster()
    cluster["spec"]["bootstrap"]["archives"]["kubernetes"]["sha256"] = checksums(bad)
    apply(home, cluster)
    change = {"spec": {"version": VERSION.removeprefix("v")}}
    home("patch", TITLE, "--type=merge", f"--patch={json.dumps(change)}")
    [machine] = items(home, "machines")
    name = f"machine/{machine['metadata']['name']}"
    reason = 'jsonpath={.status.conditions[?(@.type=="UpToDate")].reason}=UpdateFailed'
    home.wait(reason, name, timeout=1000)

    assert guest.execute("/usr/bin/kubelet --version").stdout.split()[-1] == BEFORE
    until(lambda: there.run("get", "nodes").code == 0, 300)
    [node] = items(there, "nodes")
    assert node["status"]["nodeInfo"]["kubeletVersion"] == BEFORE
    assert there.json("get", "configmap", "kept")["data"] == {"data": "intact"}
    until(lambda: "could not be updated" in home.json("get", TITLE)["status"]["next"], 300)
    status = home.json("get", TITLE)["status"]
    assert "the host went back" in status["next"]
    home.wait("jsonpath={.status.readyReplicas}=1", TITLE, timeout=300)
    [node] = items(there, "nodes")
    assert not node["spec"].get("unschedulable"), "it takes pods again"
