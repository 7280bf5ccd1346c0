"""One command makes a real cluster that looks after itself: the image of a release runs in it, and its objects too."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack import binaries
from hack.hosts.guests import Guest
from hack.program import Kubectl
from tests.cli.processes import nodewright
from tests.hosts.artefacts import IMAGE, image_archive
from tests.hosts.clusters.making import IMPORT_SECONDS, machines_of_people
from tests.hosts.clusters.test_create_cluster_ssh import FRONT, Scene, generated, pools
from tests.hosts.joining import items, until

SECONDS = 1200
RACKS = ("rack1", "rack2", "rack3")
pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.kubectl]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, lab_folder: Path) -> Iterator[Scene]:
    """The hosts have the image of this working tree, since they reach no registry."""
    folder = tmp_path_factory.mktemp("inside")
    with machines_of_people(folder, [*FRONT, *RACKS], payload=[image_archive(folder)]) as (pool, mirror):
        for guest in pool.guests.values():
            _prepare(guest, pool.guests[FRONT[0]].address)
        yield Scene(pool, mirror, folder)


def _prepare(guest: Guest, endpoint: str) -> None:
    """What kube-proxy would do for the only Service."""
    until(lambda: guest.execute(f"ctr -n k8s.io images ls -q | grep -qx {IMAGE}").returncode == 0, IMPORT_SECONDS)
    for chain in ("PREROUTING", "OUTPUT"):
        rule = f"{chain} -d 10.96.0.1 -p tcp --dport 443 -j DNAT --to-destination {endpoint}:6443"
        done = guest.execute(f"iptables -t nat -A {rule}")
        assert done.returncode == 0, done.stderr


def test_a_cluster_of_real_hosts_moves_in_scales_itself_and_leaves_clean_hosts(scene: Scene) -> None:
    file = scene.folder / "cluster.json"
    every = [*pools(scene.pool, RACKS), *generated(scene)]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": every}))
    out, data = scene.folder / "prod.kubeconfig", str(scene.folder / "data")
    create = ["create", "cluster", "-f", str(file), "--data-dir", data, f"--kubeconfig-out={out}"]
    inside = ["--image", IMAGE, "--with=ssh", "--with=bootstrap"]
    began = time.monotonic()
    made = nodewright(*create, *inside, "--timeout", str(SECONDS), timeout=SECONDS + 400)
    there = Kubectl(binaries.ensure("kubectl"), out, scene.folder / "cache")
    assert made.returncode == 0, made.stdout + made.stderr + _pods(there)
    print(
        f"\n1 control plane and 2 workers that look after themselves: {time.monotonic() - began:.0f} s\n{made.stdout}"
    )
    until(lambda: there.run("scale", "md/prod-workers", "--replicas=3").code == 0)
    until(lambda: len(items(there, "nodes")) == 4, 360)
    there.wait("jsonpath={.status.readyReplicas}=3", "md/prod-workers", timeout=360)

    gone = nodewright("delete", "cluster", "prod", "--data-dir", data, "--timeout", "900", timeout=960)
    assert gone.returncode == 0, gone.stdout + gone.stderr
    for guest in scene.pool.guests.values():
        assert not (guest.root / "etc/kubernetes/kubelet.conf").exists()


def _pods(there: Kubectl) -> str:
    shown = there.run("describe", "pods", "-n", "nodewright-system").out
    return f"{shown}\n{there.run('logs', '-n', 'nodewright-system', 'deploy/nodewright', '--tail=40').out}"
