"""A host that joins through us, against the same by a cloud-config that a person wrote, in turns on one lab.

Both clocks begin when the host is booted and end when its Node is Ready, seen by one watch. Both fetch the same kubelet
and kubeadm from the same mirror and compare their checksums. The one by hand takes containerd's configuration as the
image has it, reports nothing, and joins by the command that ``kubeadm token create`` prints.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack import binaries
from hack.bench.figures import Figure
from hack.hosts import cluster, files
from hack.hosts.lab import Lab, Record
from hack.hosts.mirror import PROGRAMS, Mirror, checksums
from hack.hosts.provider.provider import API_VERSION, KIND
from hack.program import Kubectl, Run
from hack.realplane import RealPlane

TURNS = 9
PATIENCE = 180
"""Seconds that a host may take to join."""
_NAME_AND_READY = '{.metadata.name} {.status.conditions[?(@.type=="Ready")].status}{"\\n"}'
_KUBELET_UNIT = """\
[Unit]
After=network-online.target containerd.service
[Service]
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=/usr/bin/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
--kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml $KUBELET_KUBEADM_ARGS
Restart=always
RestartSec=10
[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True, slots=True)
class _Place:
    lab: Lab
    plane: RealPlane
    mirror: Mirror
    kubectl: Kubectl
    programs: dict[str, Path]


def joining() -> list[Figure]:
    with _place() as place:
        place.kubectl("apply", "-f", "-", stdin=json.dumps(_cluster(place)))
        turns = [_turn(place, number) for number in range(TURNS)]
    for ours, by_hand in turns:
        print(f"through us {ours:.2f} s, by hand {by_hand:.2f} s, ratio {ours / by_hand:.3f}")
    ours = statistics.median(each for each, _ in turns)
    by_hand = statistics.median(each for _, each in turns)
    ratio = statistics.median(first / second for first, second in turns)
    return [
        Figure("join_seconds", ours, "s", "lower", "a cloud-config by hand", by_hand),
        Figure("join_overhead_ratio", ratio, "", "lower", "goal", 1.15),
    ]


@contextmanager
def _place() -> Iterator[_Place]:
    """A lab, a control plane that its hosts can join, a mirror of the kubelet, and the controllers at work."""
    programs = {name: binaries.ensure(name) for name in PROGRAMS}
    with tempfile.TemporaryDirectory(prefix="nodewright-bench-") as name:
        folder = Path(name)
        lab = Lab.make(folder / "lab")
        try:
            with (
                cluster.joinable(lab, folder / "plane") as plane,
                Mirror(folder / "mirror", lab.net.gateway) as mirror,
            ):
                mirror.add(binaries.kubernetes_version(), programs)
                kubectl = Kubectl(binaries.ensure("kubectl"), plane.kubeconfig, folder / "kubectl-cache")
                install = [sys.executable, "-m", "nodewright.cli", "install", f"--kubeconfig={plane.kubeconfig}"]
                subprocess.run(install, check=True, timeout=120)
                with Run(folder, kubectl):
                    yield _Place(lab, plane, mirror, kubectl, programs)
        finally:
            lab.clean()


def _turn(place: _Place, number: int) -> tuple[float, float]:
    """Seconds through us and by hand. The order changes from turn to turn, so that nobody is always the first."""
    if number % 2:
        by_hand = _by_hand(place, f"hand-{number}")
        return _through_us(place, f"ours-{number}"), by_hand
    return _through_us(place, f"ours-{number}"), _by_hand(place, f"hand-{number}")


def _through_us(place: _Place, name: str) -> float:
    place.kubectl("apply", "-f", "-", stdin=json.dumps(_machine(place, name)))
    ready = _ready(place, name)
    uid = place.kubectl("get", "machine", name, "-o", "jsonpath={.metadata.uid}")
    seconds = ready - place.lab.booted_at(uid)
    place.kubectl("delete", "machine", name, "--wait", f"--timeout={PATIENCE}s", timeout=PATIENCE + 10)
    return seconds


def _by_hand(place: _Place, name: str) -> float:
    meta = f"instance-id: {name}\nlocal-hostname: {name}\n"
    seed = {"user-data": _cloud_config(place).encode(), "meta-data": meta.encode()}
    place.lab.start(Record(name, name, 0, "2026-01-01T00:00:00+00:00", {}), seed)
    seconds = _ready(place, name) - place.lab.booted_at(name)
    place.lab.remove(name)
    place.kubectl("delete", "node", name)
    return seconds


def _ready(place: _Place, name: str) -> float:
    """The moment, in seconds since the epoch, at which the Node is Ready."""
    watch = [
        str(place.kubectl.binary), f"--kubeconfig={place.kubectl.kubeconfig}", f"--cache-dir={place.kubectl.cache}",
        f"--request-timeout={PATIENCE}s", "get", "nodes", "--watch", f"--output=jsonpath={_NAME_AND_READY}",
    ]  # fmt: skip
    with subprocess.Popen(watch, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.split() == [name, "True"]:
                    return time.time()
        finally:
            process.terminate()
    raise AssertionError(f"Node {name} is not Ready after {PATIENCE} s")


def _cloud_config(place: _Place) -> str:
    """As a person writes it from kubeadm's manual: the least that makes this image a Node."""
    base = f"{place.mirror.url}/{binaries.kubernetes_version()}/bin/linux/amd64"
    fetch = []
    for name, digest in checksums(place.programs).items():
        path = f"/usr/bin/{name}"
        fetch += [f"curl -fsSLo {path} {base}/{name}", f"echo '{digest}  {path}' | sha256sum -c", f"chmod 755 {path}"]
    join = cluster.join_command(place.plane)
    script = " && ".join([
        "sysctl -q --system", *fetch, "systemctl enable kubelet",
        f"{join} --ignore-preflight-errors={cluster.NO_CGROUP_2}",
    ])  # fmt: skip
    written = {
        "/etc/sysctl.d/k8s.conf": "net.ipv4.ip_forward = 1\nnet.bridge.bridge-nf-call-iptables = 1\n",
        "/etc/systemd/system/kubelet.service": _KUBELET_UNIT,
    }
    config = {
        "write_files": [{"path": path, "content": text} for path, text in written.items()],
        "runcmd": [script],
    }
    return f"#cloud-config\n{json.dumps(config)}\n"


def _cluster(place: _Place) -> dict[str, Any]:
    bootstrap = {
        "archives": place.mirror.archives(place.programs),
        "files": [files.CONTAINERD_FILE],  # as the image has it: neither way restarts containerd
        "nodeRegistration": {"ignorePreflightErrors": [cluster.NO_CGROUP_2]},
    }
    return {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "bench", "namespace": "default"},
        "spec": {"bootstrap": bootstrap},
    }


def _machine(place: _Place, name: str) -> dict[str, Any]:
    config = {"apiVersion": API_VERSION, "kind": KIND, "lab": str(place.lab.folder)}
    return {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": name, "namespace": "default", "labels": {"cluster.k8s.io/cluster-name": "bench"}},
        "spec": {
            "providerConfig": {"value": config},
            "versions": {"kubelet": binaries.kubernetes_version().removeprefix("v")},
        },
    }
