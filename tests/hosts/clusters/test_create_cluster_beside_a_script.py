"""The time of one command beside a script that a person writes for the same: same hosts, settings and waits."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from pathlib import Path

import pytest

from hack import binaries
from hack.hosts import files
from hack.hosts.guests import Guest
from hack.program import Kubectl
from tests.cli.processes import nodewright
from tests.hosts.clusters.test_create_cluster_ssh import FRONT, RACKS, SECONDS, Scene, generated, pools, scene
from tests.hosts.joining import VERSION, items

pytestmark = [pytest.mark.hosts, pytest.mark.hosts_long, pytest.mark.slow, pytest.mark.kubectl]
__all__ = ["scene"]
SCRIPT = Path(__file__).with_name("by_hand.sh")
ROUNDS = int(os.environ.get("NODEWRIGHT_CREATE_ROUNDS", "3"))
ADDON = "{apiVersion: v1, kind: ConfigMap, metadata: {name: made, namespace: kube-system}}\n"
_CLEARED = """\
[ ! -e /usr/bin/kubeadm ] || kubeadm reset --force > /dev/null 2>&1
systemctl disable --quiet --now kubelet 2> /dev/null
rm -rf /usr/bin/kubelet /usr/bin/kubeadm /etc/systemd/system/kubelet.service /etc/kubernetes /var/lib/cni
rm -f /etc/sysctl.d/90-* /etc/modules-load.d/* /root/init.yaml
systemctl daemon-reload
[ -z "$(ctr -n k8s.io tasks ls -q)" ]
"""
"""As before the first round, but for images and the content of containerd's own folder."""


def test_one_command_takes_about_as_long_as_a_script(scene: Scene) -> None:
    """In turns; the medians are compared by `python -m hack.bench create`, not here."""
    ours, script = [], []
    for number in range(ROUNDS):
        ours.append(_by_one_command(scene, number))
        script.append(_by_hand(scene, number))
    one, other = statistics.median(ours), statistics.median(script)
    print(f"\n{one:.1f} s, the script {other:.1f} s: create_cluster_ratio {one / other:.2f} (medians of {ROUNDS})")
    print(f"one command: {_listed(ours)}; the script: {_listed(script)}")


def _listed(times: list[float]) -> str:
    return ", ".join(f"{each:.1f} s" for each in times)


def _by_one_command(scene: Scene, number: int) -> float:
    _clear(scene)
    file, addon = scene.folder / "cluster.json", scene.folder / "addon.yaml"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*pools(scene.pool), *generated(scene)]}))
    addon.write_text(ADDON)
    out, data = scene.folder / f"ours-{number}.kubeconfig", str(scene.folder / f"data-{number}")
    create = ["create", "cluster", "-f", str(file), "--keep", "--data-dir", data, f"--kubeconfig-out={out}"]
    began = time.monotonic()
    made = nodewright(*create, f"--addons={addon}", "--timeout", str(SECONDS), timeout=SECONDS + 60)
    took = time.monotonic() - began
    assert made.returncode == 0, made.stdout + made.stderr
    print(made.stdout)
    _check(scene, out)
    gone = nodewright("delete", "cluster", "prod", "--data-dir", data, "--timeout", "300", timeout=360)
    assert gone.returncode == 0, gone.stdout + gone.stderr
    return took


def _by_hand(scene: Scene, number: int) -> float:
    _clear(scene)
    known, containerd, addon = (scene.folder / name for name in ("known_hosts", "containerd.toml", "addon.yaml"))
    entries = [scene.pool.entry(name) for name in scene.pool.guests]
    known.write_text("".join(f"{each['address']} {key}\n" for each in entries for key in each["hostKeys"]))
    containerd.write_text(files.CONTAINERD_FILE["content"])
    out = scene.folder / f"script-{number}.kubeconfig"
    address = {name: guest.address for name, guest in scene.pool.guests.items()}
    settings = {
        "FRONT": address[FRONT[0]],
        "WORKERS": " ".join(address[name] for name in RACKS),
        "MIRROR": scene.mirror.url,
        "VERSION": VERSION,
        "KEY": str(scene.pool.key),
        "KNOWN_HOSTS": str(known),
        "CONTAINERD": str(containerd),
        "ADDON": str(addon),
        "OUT": str(out),
        "KUBECTL": str(binaries.ensure("kubectl")),
    }
    began = time.monotonic()
    made = subprocess.run(
        ["/bin/bash", str(SCRIPT)], env={**os.environ, **settings}, capture_output=True, text=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip
    took = time.monotonic() - began
    assert made.returncode == 0, made.stdout + made.stderr
    _check(scene, out)
    return took


def _check(scene: Scene, kubeconfig: Path) -> None:
    """Three Ready Nodes and the add-on, whoever has made them."""
    there = Kubectl(binaries.ensure("kubectl"), kubeconfig, scene.folder / "cache")
    there("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=1s")
    assert [node["status"]["nodeInfo"]["kubeletVersion"] for node in items(there, "nodes")] == [VERSION] * 3
    there("get", "configmap", "made", "-n", "kube-system")


def _clear(scene: Scene) -> None:
    for guest in scene.pool.guests.values():
        _without_kubernetes(guest)


def _without_kubernetes(guest: Guest) -> None:
    done = guest.execute(_CLEARED)
    assert done.returncode == 0, done.stdout + done.stderr
